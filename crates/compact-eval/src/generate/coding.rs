//! A coding session: a goal, then work items, each explored, changed, tested, repaired and committed.
//!
//! Between the items the user sets rules, replaces some of them, takes decisions and names work for
//! later. The session ends in the middle of an item, as sessions do when the context runs out.

mod talk;

use serde_json::{Value, json};

use super::author::Author;
use super::planted::PlantedKind;
use super::project::{FileId, Project, SourceFile};
use super::script::{ScriptCall, ScriptPosition, SessionScript};

pub(crate) use talk::write_talk;

pub(crate) const CWD: &str = "/home/dev/ledger-api";

/// Rules that carry a value: the grammar's name, what they are about, the bounds and the unit.
const TOPICS: &[RuleTopic] = &[
    RuleTopic {
        rule: "topic_attempts",
        subject: "service",
        low: 2,
        high: 19,
        unit: "attempts",
    },
    RuleTopic {
        rule: "topic_timeout",
        subject: "service",
        low: 310,
        high: 9900,
        unit: "ms",
    },
    RuleTopic {
        rule: "topic_rows",
        subject: "entity",
        low: 120,
        high: 9800,
        unit: "rows",
    },
    RuleTopic {
        rule: "topic_retention",
        subject: "entity",
        low: 11,
        high: 800,
        unit: "days",
    },
    RuleTopic {
        rule: "topic_lag",
        subject: "entity",
        low: 7,
        high: 900,
        unit: "seconds",
    },
    RuleTopic {
        rule: "topic_reviewers",
        subject: "entity",
        low: 2,
        high: 6,
        unit: "approvals",
    },
    RuleTopic {
        rule: "topic_rounding",
        subject: "entity",
        low: 2,
        high: 9,
        unit: "decimals",
    },
    RuleTopic {
        rule: "topic_price",
        subject: "entity",
        low: 110,
        high: 9900,
        unit: "EUR",
    },
];

struct RuleTopic {
    rule: &'static str,
    subject: &'static str,
    low: u64,
    high: u64,
    unit: &'static str,
}

/// A rule in force.
struct StandingRule {
    topic: &'static RuleTopic,
    subject: String,
    value: String,
    fact: String,
}

pub(crate) struct CodingSession<'g> {
    author: Author<'g>,
    pub(crate) script: SessionScript,
    pub(crate) branch: String,
    project: Project,
    standing: Vec<StandingRule>,
}

/// Writes a session of at least so many bytes of text.
pub(crate) fn write_script(author: Author<'_>, size: usize) -> CodingSession<'_> {
    let mut session = CodingSession::begin(author);
    session.open();
    while session.script.size < size {
        session.add_work_item();
    }
    session.leave_unfinished();
    session
}

impl<'g> CodingSession<'g> {
    fn begin(mut author: Author<'g>) -> CodingSession<'g> {
        let branch = author.write("branch");
        CodingSession {
            author,
            script: SessionScript::default(),
            branch,
            project: Project::default(),
            standing: Vec::new(),
        }
    }
}

impl CodingSession<'_> {
    fn open(&mut self) {
        let ticket = self.author.write("ticket");
        let goal = self.author.write_with("goal", &[("ticket", &ticket)]);
        let spot = self.script.add_user(goal.clone());
        self.script
            .plant(spot, PlantedKind::Goal, &goal, &[&ticket]);
        self.script
            .plant(spot, PlantedKind::Id, &ticket, &[&ticket]);
        let file = self.project.open_module(&mut self.author);
        self.explore(file);
        let plan = self
            .author
            .write_with("plan", &[("path", &self.path(file))]);
        self.script.add_reply(plan);
    }

    fn add_work_item(&mut self) {
        let file = self.choose_file();
        self.ask_for_work(file);
        self.explore(file);
        if self.author.random.roll_percent(30) {
            self.decide_alone();
        }
        self.change_file(file);
        self.run_tests(file);
        self.commit(file);
        if self.author.random.roll_percent(25) {
            self.add_aside();
        }
    }

    /// Chooses a file, mostly a new one, sometimes one that was open before.
    fn choose_file(&mut self) -> FileId {
        match self.project.pick_known(&mut self.author) {
            Some(file) if self.author.random.roll_percent(25) => {
                self.author.focus = self
                    .project
                    .get(file)
                    .map(|f| f.focus.clone())
                    .unwrap_or_default();
                file
            }
            _ => self.project.open_module(&mut self.author),
        }
    }

    fn path(&self, file: FileId) -> String {
        self.project.path(file).to_owned()
    }

    /// Adds the user's message: the work, and sometimes a rule, a replaced rule, a decision or later work.
    fn ask_for_work(&mut self, file: FileId) {
        let path = self.path(file);
        let mut parts = vec![self.author.write_with("ask", &[("path", &path)])];
        let mut facts: Vec<PlannedFact> = Vec::new();
        match self.author.random.between(0, 9) {
            0..=2 => self.add_rule(&mut parts, &mut facts),
            3 | 4 => self.replace_rule(&mut parts, &mut facts),
            5 | 6 => self.add_decision(&mut parts, &mut facts),
            7 => self.postpone(&mut parts, &mut facts),
            _ => {}
        }
        let spot = self.script.add_user(parts.join("\n\n"));
        for fact in facts {
            self.plant(spot, fact);
        }
    }

    fn plant(&mut self, spot: ScriptPosition, planting: PlannedFact) {
        let needles: Vec<&str> = planting.needles.iter().map(String::as_str).collect();
        let id = self
            .script
            .plant(spot, planting.kind, &planting.text, &needles);
        if let Some(old) = planting.replaces {
            self.script
                .amend(&old, |fact| fact.superseded_by = Some(id.clone()));
        }
        if let Some(reason) = planting.reason {
            self.script.amend(&id, |fact| fact.reason = Some(reason));
        }
        if let Some(standing) = planting.standing {
            self.standing.push(StandingRule {
                fact: id,
                ..standing
            });
        }
    }

    fn add_rule(&mut self, parts: &mut Vec<String>, facts: &mut Vec<PlannedFact>) {
        let Some(topic) = self.author.random.pick(TOPICS) else {
            return;
        };
        let subject = self.author.write(topic.subject);
        if self
            .standing
            .iter()
            .any(|s| s.topic.rule == topic.rule && s.subject == subject)
        {
            return;
        }
        let intro = self.author.write("constraint_intro");
        let planting = self.plan_rule(topic, subject, "");
        parts.push(format!("{intro} {}.", planting.text));
        facts.push(planting);
    }

    fn replace_rule(&mut self, parts: &mut Vec<String>, facts: &mut Vec<PlannedFact>) {
        if self.standing.is_empty() {
            return self.add_rule(parts, facts);
        }
        let at = self.author.random.index(self.standing.len());
        let old = self.standing.swap_remove(at);
        let intro = self.author.write("superseding_intro");
        let mut planting = self.plan_rule(old.topic, old.subject, &old.value);
        planting.replaces = Some(old.fact);
        parts.push(format!("{intro} {}.", planting.text));
        facts.push(planting);
    }

    fn plan_rule(&mut self, topic: &'static RuleTopic, subject: String, not: &str) -> PlannedFact {
        let mut value = String::new();
        while value.is_empty() || value == not {
            value = format!(
                "{} {}",
                self.author.random.between(topic.low, topic.high),
                topic.unit
            );
        }
        let text = self
            .author
            .write_with(topic.rule, &[("subject", &subject), ("value", &value)]);
        let needles = vec![subject.clone(), value.clone()];
        let standing = Some(StandingRule {
            topic,
            subject,
            value,
            fact: String::new(),
        });
        PlannedFact {
            standing,
            ..PlannedFact::new(PlantedKind::Constraint, text, needles)
        }
    }

    fn add_decision(&mut self, parts: &mut Vec<String>, facts: &mut Vec<PlannedFact>) {
        let intro = self.author.write("decision_intro");
        let planting = self.plan_decision();
        let reason = planting.reason.clone().unwrap_or_default();
        parts.push(format!("{intro} {}, because {reason}.", planting.text));
        facts.push(planting);
    }

    fn decide_alone(&mut self) {
        let planting = self.plan_decision();
        let reason = planting.reason.clone().unwrap_or_default();
        let thinking = self.author.write_maybe(50, "think");
        let text = format!("Decision: {}, because {reason}.", planting.text);
        let spot = self.script.add_assistant(thinking, Some(text), Vec::new());
        self.plant(spot, planting);
    }

    fn plan_decision(&mut self) -> PlannedFact {
        let text = self.author.write("choice");
        let reason = Some(self.author.write("reason"));
        PlannedFact {
            reason,
            ..PlannedFact::new(PlantedKind::Decision, text.clone(), vec![text])
        }
    }

    fn postpone(&mut self, parts: &mut Vec<String>, facts: &mut Vec<PlannedFact>) {
        let intro = self.author.write("open_intro");
        let text = self.author.write("later_work");
        parts.push(format!("{intro} {text}."));
        facts.push(PlannedFact::new(
            PlantedKind::Open,
            text.clone(),
            vec![text],
        ));
    }

    fn explore(&mut self, file: FileId) {
        let thinking = self.author.write_maybe(20, "think");
        let text = self.author.write("explore");
        let word = self.author.write("field");
        let other = self.project.open_neighbour(&mut self.author);
        let calls = vec![self.grep_call(&word, &[file, other]), self.read_call(file)];
        self.script.add_assistant(thinking, Some(text), calls);
        for _ in 0..self.author.random.between(1, 3) {
            self.look_further();
        }
        let plan = self
            .author
            .write_with("plan", &[("path", &self.path(file))]);
        self.script.add_reply(plan);
    }

    fn look_further(&mut self) {
        let text = self.author.write_maybe(40, "finding");
        let call = match self.author.random.between(0, 9) {
            0 => self.shell_call("log_command", "app_log"),
            1 => self.shell_call("curl_command", "curl_json"),
            2 => self.shell_call("psql_command", "psql_table"),
            3 => self.shell_call("explain_command", "explain_plan"),
            4 => self.shell_call("bash_read", "git_log"),
            5 | 6 => {
                let focus = self.author.focus.clone();
                let file = self.project.open_module(&mut self.author);
                self.author.focus = focus;
                self.read_call(file)
            }
            _ => {
                let file = self.project.open_neighbour(&mut self.author);
                self.read_call(file)
            }
        };
        self.script.add_assistant(None, text, vec![call]);
    }

    fn change_file(&mut self, file: FileId) {
        for _ in 0..self.author.random.between(1, 3) {
            self.edit(file);
        }
        let path = self.path(file);
        let spot = self.script.add_reply(self.author.write("after_edit"));
        let note = format!("modified {path}");
        self.script
            .plant(spot.at_previous(), PlantedKind::File, &note, &[&path]);
        if self.author.random.roll_percent(60) {
            self.add_test();
        }
    }

    fn edit(&mut self, file: FileId) {
        let Some(change) = self.project.change_statement(file, &mut self.author) else {
            return;
        };
        let Some(source) = self.project.get(file) else {
            return;
        };
        let path = format!("{CWD}/{}", source.path);
        let snippet = source.numbered_lines(change.line.saturating_sub(3), 9);
        let output = format!(
            "The file {path} has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n{snippet}"
        );
        let call = ScriptCall {
            name: "Edit",
            input: json!({"file_path": path, "old_string": change.old, "new_string": change.new}),
            output,
            detail: json!({
                "filePath": path,
                "oldString": change.old,
                "newString": change.new,
                "userModified": false,
                "replaceAll": false,
            }),
            ..ScriptCall::default()
        };
        let text = self.author.write_maybe(30, "after_edit");
        self.script.add_assistant(None, text, vec![call]);
    }

    fn add_test(&mut self) {
        let file = self.project.open_neighbour(&mut self.author);
        let Some(source) = self.project.get(file) else {
            return;
        };
        let path = format!("{CWD}/{}", source.path);
        let call = ScriptCall {
            name: "Write",
            input: json!({"file_path": path, "content": source.text()}),
            output: format!("File created successfully at: {path}"),
            detail: json!({"type": "create", "filePath": path, "structuredPatch": []}),
            ..ScriptCall::default()
        };
        let relative = source.path.clone();
        let spot = self.script.add_assistant(None, None, vec![call]);
        self.script.plant(
            spot.at_call(0),
            PlantedKind::File,
            &format!("created {relative}"),
            &[&relative],
        );
    }

    /// Runs the tests; most often they fail once, for a reason that is then found.
    fn run_tests(&mut self, file: FileId) {
        if self.author.random.roll_percent(70) {
            let error = self.fail_tests(file);
            self.repair(file, &error);
        }
        let run = self.test_call(file, None);
        self.script.add_assistant(None, None, vec![run]);
    }

    fn fail_tests(&mut self, file: FileId) -> String {
        let error = self.author.write("error");
        let run = self.test_call(file, Some(&error));
        let spot = self.script.add_assistant(None, None, vec![run]);
        self.script
            .plant(spot.at_result(0), PlantedKind::Error, &error, &[&error])
    }

    fn repair(&mut self, file: FileId, error: &str) {
        if self.author.random.roll_percent(40) {
            self.look_further();
        }
        let cause = self.author.write("cause");
        let text = self.author.write_with("found", &[("cause", &cause)]);
        let thinking = self.author.write_maybe(40, "think");
        let spot = self.script.add_assistant(thinking, Some(text), Vec::new());
        let fix = self.script.plant(spot, PlantedKind::Fix, &cause, &[&cause]);
        self.script.amend(error, |fact| fact.fixed_by = Some(fix));
        self.edit(file);
    }

    fn commit(&mut self, file: FileId) {
        let hash = self.author.random.hex(9);
        let subject = self.author.write("commit_subject");
        let command = format!(
            "git commit -aqm '{subject}' && git log --oneline -n 1 && git diff --stat HEAD~1"
        );
        let path = self.path(file);
        let lines = self.author.random.between(3, 90);
        let output = format!(
            "{hash} {subject}\n {path} | {lines} +++++---\n 2 files changed, {lines} insertions(+), {} deletions(-)",
            lines / 3
        );
        self.script.add_assistant(
            None,
            None,
            vec![bash_call(&command, "Commit the change", output)],
        );
        let wrap = self.author.write_with(
            "wrap",
            &[("path", &path), ("commit", &hash), ("branch", &self.branch)],
        );
        let spot = self.script.add_reply(wrap);
        self.script.plant(
            spot,
            PlantedKind::Done,
            &format!("{subject} ({hash})"),
            &[&hash],
        );
        self.script.plant(spot, PlantedKind::Id, &hash, &[&hash]);
    }

    fn add_aside(&mut self) {
        let question = self.author.write("aside");
        self.script.add_user(question);
        let answer = self.author.write("answer");
        self.script.add_reply(answer);
    }

    fn leave_unfinished(&mut self) {
        let file = self.project.open_module(&mut self.author);
        let path = self.path(file);
        let work = self.author.write_with("work", &[("path", &path)]);
        let spot = self.script.add_user(format!(
            "Last one for today: {work}. Tell me what you would change before you do."
        ));
        self.script.plant(spot, PlantedKind::Open, &work, &[&work]);
        self.explore(file);
    }

    fn read_call(&mut self, file: FileId) -> ScriptCall {
        let Some(source) = self.project.get(file) else {
            return ScriptCall::default();
        };
        let path = format!("{CWD}/{}", source.path);
        ScriptCall {
            name: "Read",
            input: json!({"file_path": path}),
            output: source.numbered_lines(1, 2000),
            detail: read_detail(&path, source),
            ..ScriptCall::default()
        }
    }

    fn grep_call(&mut self, word: &str, files: &[FileId]) -> ScriptCall {
        let content: String = files
            .iter()
            .filter_map(|file| self.project.get(*file))
            .map(|source| source.grep_lines(word))
            .collect();
        let count = content.lines().count();
        let output = if content.is_empty() {
            "No matches found".to_owned()
        } else {
            content
        };
        ScriptCall {
            name: "Grep",
            input: json!({"pattern": word, "path": "src", "output_mode": "content", "-n": true}),
            detail: json!({"mode": "content", "numFiles": 0, "filenames": [], "content": output, "numLines": count}),
            output,
            ..ScriptCall::default()
        }
    }

    fn shell_call(&mut self, command: &str, output: &str) -> ScriptCall {
        let command = self.author.write(command);
        let output = self.author.write(output);
        let description = self.author.write("description");
        bash_call(&command, &description, output)
    }

    fn test_call(&mut self, file: FileId, error: Option<&str>) -> ScriptCall {
        let path = self.path(file);
        let seconds = self.author.random.between(120, 9000);
        let passed = self.author.random.between(12, 400);
        let mut out = format!(
            "============================= test session starts ==============================\nplatform linux -- Python 3.12.7, pytest-8.3.4, pluggy-1.5.0\nrootdir: {CWD}\ncollected {} items\n\n",
            passed + 1
        );
        for _ in 0..self.author.random.between(3, 12) {
            out.push_str(&self.author.write("other_test_line"));
            out.push('\n');
        }
        let outcome = match error {
            Some(error) => {
                let failure = self.render_failure(file, error);
                out.push_str(&failure);
                format!("1 failed, {passed} passed")
            }
            None => format!("{passed} passed"),
        };
        out.push_str(&format!(
            "\n================== {outcome} in {}.{:02}s ==================",
            seconds / 100,
            seconds % 100
        ));
        let command = format!(
            "pytest -q {}",
            path.rsplit_once('/').map_or("", |(folder, _)| folder)
        );
        ScriptCall {
            failed: error.is_some(),
            ..bash_call(&command, "Run the tests of the package", out)
        }
    }

    fn render_failure(&mut self, file: FileId, error: &str) -> String {
        let path = self.path(file);
        let trace = self
            .author
            .write_with("traceback", &[("path", &path), ("error", error)]);
        let warning = self.author.write("warning_line");
        let lines = self
            .project
            .get(file)
            .map_or(1, |source| source.lines.len());
        let at = self.author.random.between(1, lines as u64) as usize;
        let context = self
            .project
            .get(file)
            .map_or_else(String::new, |source| source.numbered_lines(at, 8));
        format!(
            "\n=================================== FAILURES ===================================\n{context}\nE   {error}\n\n{path}:{at}: {trace}\n=============================== warnings summary ===============================\n{warning}\n=========================== short test summary info ============================\nFAILED {path} - {error}"
        )
    }
}

/// A fact on its way into the script.
struct PlannedFact {
    kind: PlantedKind,
    text: String,
    needles: Vec<String>,
    replaces: Option<String>,
    reason: Option<String>,
    standing: Option<StandingRule>,
}

impl PlannedFact {
    fn new(kind: PlantedKind, text: String, needles: Vec<String>) -> Self {
        PlannedFact {
            kind,
            text,
            needles,
            replaces: None,
            reason: None,
            standing: None,
        }
    }
}

fn bash_call(command: &str, description: &str, output: String) -> ScriptCall {
    ScriptCall {
        name: "Bash",
        input: json!({"command": command, "description": description}),
        detail: json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false}),
        output,
        ..ScriptCall::default()
    }
}

fn read_detail(path: &str, source: &SourceFile) -> Value {
    let lines = source.lines.len();
    json!({
        "type": "text",
        "file": {
            "filePath": path,
            "content": source.text(),
            "numLines": lines,
            "startLine": 1,
            "totalLines": lines,
        },
    })
}
