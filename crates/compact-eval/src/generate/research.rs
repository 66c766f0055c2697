//! A literature review: questions, searches, pages that are read, notes, drafts.
//!
//! The reader's rules change on the way, pages cannot be opened and are found elsewhere, studies are
//! kept or left out for a reason, sections are finished and questions stay open.

use serde_json::json;

use super::author::Author;
use super::planted::PlantedKind;
use super::script::{ScriptCall, ScriptPosition, SessionScript};

/// Rules the reader may set: the rule that words them and the one that fills them.
const RULES: &[(&str, &str)] = &[
    ("topic_since", "since"),
    ("topic_style", "style"),
    ("topic_length", "length"),
    ("topic_scope", "scope"),
    ("topic_preprint", "preprint"),
];

struct ResearchSession<'g> {
    author: Author<'g>,
    script: SessionScript,
    brief: String,
    standing: Vec<Option<String>>,
    sections: usize,
}

/// Writes a session of at least so many bytes of text.
pub(crate) fn write_script(mut author: Author<'_>, size: usize) -> SessionScript {
    let brief = format!(
        "HR-{}-{}",
        author.random.between(10, 99),
        author.random.hex(4)
    );
    let standing = RULES.iter().map(|_| None).collect();
    let mut review = ResearchSession {
        author,
        script: SessionScript::default(),
        brief,
        standing,
        sections: 0,
    };
    review.open();
    while review.script.size < size {
        review.add_section();
    }
    review.close();
    review.script
}

impl ResearchSession<'_> {
    fn write_text(&mut self, rule: &str) -> String {
        self.author.write_with(rule, &[("brief", &self.brief)])
    }

    fn open(&mut self) {
        let goal = self.write_text("research_goal");
        let spot = self.script.add_user(goal.clone());
        self.script
            .plant(spot, PlantedKind::Goal, &goal, &[&self.brief]);
        self.script
            .plant(spot, PlantedKind::Id, &self.brief, &[&self.brief]);
        self.search();
    }

    fn add_section(&mut self) {
        self.ask_for_section();
        self.search();
        for _ in 0..self.author.random.between(1, 3) {
            self.read_page();
        }
        self.decide();
        self.draft();
    }

    fn ask_for_section(&mut self) {
        let mut text = self.write_text("research_ask");
        let rule = self
            .author
            .random
            .roll_percent(55)
            .then(|| self.plan_rule());
        if let Some(rule) = &rule {
            text = format!("{text}\n\n{}", rule.said);
        }
        let spot = self.script.add_user(text);
        if let Some(rule) = rule {
            self.impose(spot, rule);
        }
    }

    fn plan_rule(&mut self) -> ReviewRule {
        let which = self.author.random.index(RULES.len());
        let (wording, fill) = RULES.get(which).copied().unwrap_or_default();
        let value = self.author.write(fill);
        let text = self.author.write_with(wording, &[("value", &value)]);
        let replaces = self.standing.get_mut(which).and_then(Option::take);
        let intro = match replaces {
            Some(_) => self.author.write("superseding_intro"),
            None => self.author.write("constraint_intro"),
        };
        ReviewRule {
            which,
            value,
            said: format!("{intro} {text}."),
            text,
            replaces,
        }
    }

    fn impose(&mut self, spot: ScriptPosition, rule: ReviewRule) {
        let id = self
            .script
            .plant(spot, PlantedKind::Constraint, &rule.text, &[&rule.value]);
        if let Some(old) = rule.replaces {
            self.script
                .amend(&old, |fact| fact.superseded_by = Some(id.clone()));
        }
        if let Some(place) = self.standing.get_mut(rule.which) {
            *place = Some(id);
        }
    }

    fn search(&mut self) {
        let text = self.write_text("research_look");
        let query = format!(
            "{} {}",
            self.author.write("subject"),
            self.author.write("outcome")
        );
        let hits = self.write_text("search_results");
        let calls = vec![tool_call(
            "search_literature",
            json!({"query": query, "limit": 9}),
            hits,
        )];
        let thinking = self.author.write_maybe(40, "sentence");
        self.script.add_assistant(thinking, Some(text), calls);
    }

    fn read_page(&mut self) {
        let url = self.author.write("url");
        if self.author.random.roll_percent(25) {
            self.fail_to_read(&url);
        }
        let page = self.write_text("page");
        let spot = self.script.add_assistant(
            None,
            None,
            vec![tool_call("open_page", json!({"url": url}), page)],
        );
        self.script.plant(
            spot.at_call(0),
            PlantedKind::File,
            &format!("read {url}"),
            &[&url],
        );
        let note = self.write_text("research_answer");
        self.script.add_reply(note);
    }

    fn fail_to_read(&mut self, url: &str) {
        let error = self.author.write_with("research_error", &[("url", url)]);
        let failed = ScriptCall {
            failed: true,
            ..tool_call("open_page", json!({"url": url}), error.clone())
        };
        let spot = self.script.add_assistant(None, None, vec![failed]);
        let error = self
            .script
            .plant(spot.at_result(0), PlantedKind::Error, &error, &[&error]);
        let fix = self.write_text("research_fix");
        let spot = self
            .script
            .add_reply(format!("The page did not open. I {fix}."));
        let fix = self.script.plant(spot, PlantedKind::Fix, &fix, &[&fix]);
        self.script.amend(&error, |fact| fact.fixed_by = Some(fix));
    }

    fn decide(&mut self) {
        let decision = self.write_text("research_decision");
        let reason = self.write_text("research_reason");
        let spot = self
            .script
            .add_reply(format!("Decision: {decision}, because {reason}."));
        let id = self
            .script
            .plant(spot, PlantedKind::Decision, &decision, &[&decision]);
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
        let saved = tool_call(
            "exec_command",
            json!({"cmd": command}),
            format!("{words} {path}"),
        );
        let spot = self.script.add_assistant(None, None, vec![saved]);
        self.script.plant(
            spot.at_call(0),
            PlantedKind::File,
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
            .roll_percent(40)
            .then(|| self.write_text("research_open"));
        if let Some(open) = &open {
            said = format!("{said} Still open: {open}.");
        }
        let spot = self.script.add_reply(said.clone());
        self.script.plant(spot, PlantedKind::Done, &said, &[&path]);
        if let Some(open) = open {
            self.script.plant(spot, PlantedKind::Open, &open, &[&open]);
        }
    }

    fn close(&mut self) {
        self.script.add_user(
            "Before you go on: which rules of mine hold now, and what is still open?".into(),
        );
    }
}

struct ReviewRule {
    which: usize,
    value: String,
    text: String,
    said: String,
    replaces: Option<String>,
}

fn tool_call(name: &'static str, input: serde_json::Value, output: String) -> ScriptCall {
    ScriptCall {
        name,
        input,
        output,
        ..ScriptCall::default()
    }
}
