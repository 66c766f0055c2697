//! A literature review: questions, searches, pages that are read, notes, drafts.
//!
//! The reader's rules change on the way, pages cannot be opened and are found elsewhere, studies are
//! kept or left out for a reason, sections are finished and questions stay open.

use serde_json::json;

use super::author::Author;
use super::planted::Kind;
use super::script::{Call, Script, Spot};

/// Rules the reader may set: the rule that words them and the one that fills them.
const RULES: &[(&str, &str)] = &[
    ("topic_since", "since"),
    ("topic_style", "style"),
    ("topic_length", "length"),
    ("topic_scope", "scope"),
    ("topic_preprint", "preprint"),
];

struct Research<'g> {
    author: Author<'g>,
    script: Script,
    brief: String,
    standing: Vec<Option<String>>,
    sections: usize,
}

/// Writes a session of at least so many bytes of text.
pub(crate) fn write(mut author: Author<'_>, size: usize) -> Script {
    let brief = format!(
        "HR-{}-{}",
        author.random.between(10, 99),
        author.random.hex(4)
    );
    let standing = RULES.iter().map(|_| None).collect();
    let mut review = Research {
        author,
        script: Script::default(),
        brief,
        standing,
        sections: 0,
    };
    review.open();
    while review.script.size < size {
        review.section();
    }
    review.close();
    review.script
}

impl Research<'_> {
    fn write(&mut self, rule: &str) -> String {
        self.author.write_with(rule, &[("brief", &self.brief)])
    }

    fn open(&mut self) {
        let goal = self.write("research_goal");
        let spot = self.script.user(goal.clone());
        self.script.plant(spot, Kind::Goal, &goal, &[&self.brief]);
        self.script
            .plant(spot, Kind::Id, &self.brief, &[&self.brief]);
        self.search();
    }

    fn section(&mut self) {
        self.ask();
        self.search();
        for _ in 0..self.author.random.between(1, 3) {
            self.read();
        }
        self.decide();
        self.draft();
    }

    fn ask(&mut self) {
        let mut text = self.write("research_ask");
        let rule = self.author.random.percent(55).then(|| self.rule());
        if let Some(rule) = &rule {
            text = format!("{text}\n\n{}", rule.said);
        }
        let spot = self.script.user(text);
        if let Some(rule) = rule {
            self.impose(spot, rule);
        }
    }

    fn rule(&mut self) -> Rule {
        let which = self.author.random.index(RULES.len());
        let (wording, fill) = RULES.get(which).copied().unwrap_or_default();
        let value = self.author.write(fill);
        let text = self.author.write_with(wording, &[("value", &value)]);
        let replaces = self.standing.get_mut(which).and_then(Option::take);
        let intro = match replaces {
            Some(_) => self.author.write("superseding_intro"),
            None => self.author.write("constraint_intro"),
        };
        Rule {
            which,
            value,
            said: format!("{intro} {text}."),
            text,
            replaces,
        }
    }

    fn impose(&mut self, spot: Spot, rule: Rule) {
        let id = self
            .script
            .plant(spot, Kind::Constraint, &rule.text, &[&rule.value]);
        if let Some(old) = rule.replaces {
            self.script
                .amend(&old, |fact| fact.superseded_by = Some(id.clone()));
        }
        if let Some(place) = self.standing.get_mut(rule.which) {
            *place = Some(id);
        }
    }

    fn search(&mut self) {
        let text = self.write("research_look");
        let query = format!(
            "{} {}",
            self.author.write("subject"),
            self.author.write("outcome")
        );
        let hits = self.write("search_results");
        let calls = vec![call(
            "search_literature",
            json!({"query": query, "limit": 9}),
            hits,
        )];
        let thinking = self.author.maybe(40, "sentence");
        self.script.act(thinking, Some(text), calls);
    }

    fn read(&mut self) {
        let url = self.author.write("url");
        if self.author.random.percent(25) {
            self.fail_to_read(&url);
        }
        let page = self.write("page");
        let spot = self.script.act(
            None,
            None,
            vec![call("open_page", json!({"url": url}), page)],
        );
        self.script
            .plant(spot.call(0), Kind::File, &format!("read {url}"), &[&url]);
        let note = self.write("research_answer");
        self.script.say(note);
    }

    fn fail_to_read(&mut self, url: &str) {
        let error = self.author.write_with("research_error", &[("url", url)]);
        let failed = Call {
            failed: true,
            ..call("open_page", json!({"url": url}), error.clone())
        };
        let spot = self.script.act(None, None, vec![failed]);
        let error = self
            .script
            .plant(spot.result(0), Kind::Error, &error, &[&error]);
        let fix = self.write("research_fix");
        let spot = self.script.say(format!("The page did not open. I {fix}."));
        let fix = self.script.plant(spot, Kind::Fix, &fix, &[&fix]);
        self.script.amend(&error, |fact| fact.fixed_by = Some(fix));
    }

    fn decide(&mut self) {
        let decision = self.write("research_decision");
        let reason = self.write("research_reason");
        let spot = self
            .script
            .say(format!("Decision: {decision}, because {reason}."));
        let id = self
            .script
            .plant(spot, Kind::Decision, &decision, &[&decision]);
        self.script.amend(&id, |fact| fact.reason = Some(reason));
    }

    fn draft(&mut self) {
        self.sections += 1;
        let path = format!(
            "draft/{:02}-{}.md",
            self.sections,
            self.author.write("subject").replace(' ', "-")
        );
        let text = format!(
            "{}\n\n{}",
            self.author.write("para"),
            self.author.write("para")
        );
        let words = text.split_whitespace().count();
        let command = format!("cat > {path} <<'EOF'\n{text}\nEOF\nwc -w {path}");
        let saved = call(
            "exec_command",
            json!({"cmd": command}),
            format!("{words} {path}"),
        );
        let spot = self.script.act(None, None, vec![saved]);
        self.script.plant(
            spot.call(0),
            Kind::File,
            &format!("created {path}"),
            &[&path],
        );
        let mut said = format!(
            "Section {} is drafted in {path} ({words} words).",
            self.sections
        );
        let open = self
            .author
            .random
            .percent(40)
            .then(|| self.write("research_open"));
        if let Some(open) = &open {
            said = format!("{said} Still open: {open}.");
        }
        let spot = self.script.say(said.clone());
        self.script.plant(spot, Kind::Done, &said, &[&path]);
        if let Some(open) = open {
            self.script.plant(spot, Kind::Open, &open, &[&open]);
        }
    }

    fn close(&mut self) {
        self.script
            .user("Before you go on: which rules of mine hold now, and what is still open?".into());
    }
}

struct Rule {
    which: usize,
    value: String,
    text: String,
    said: String,
    replaces: Option<String>,
}

fn call(name: &'static str, input: serde_json::Value, output: String) -> Call {
    Call {
        name,
        input,
        output,
        ..Call::default()
    }
}
