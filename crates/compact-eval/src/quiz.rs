//! A quiz over an archive: sessions that talk about the same few hundred services, decisions stated
//! once somewhere in them, and questions that ask for each decision in other words.
//!
//! Every decision has its likes: the same sentence about another service of that name, another
//! environment or another setting, and the question itself as somebody asked it. A question shares
//! topics with its answer and never the value. The talk around them is about the same things, but does not
//! name a service, a setting and an environment in one breath: that would be an answer too. A session
//! keeps to a few services, as real ones do. Sessions are made one by one, so that a quiz over
//! hundreds of megabytes fits into memory.

mod exam;

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::json;

use crate::random::Random;

pub use exam::{Exam, ExamResult};

const FIRST: [&str; 20] = [
    "billing",
    "invoice",
    "ledger",
    "payment",
    "refund",
    "catalog",
    "search",
    "profile",
    "session",
    "upload",
    "export",
    "import",
    "report",
    "notification",
    "audit",
    "pricing",
    "shipping",
    "inventory",
    "fraud",
    "identity",
];
const SECOND: [&str; 10] = [
    "api",
    "worker",
    "gateway",
    "sync",
    "router",
    "indexer",
    "scheduler",
    "collector",
    "mirror",
    "bridge",
];
const ENVIRONMENTS: [&str; 4] = ["staging", "production", "sandbox", "canary"];

/// A setting: what a decision calls it, how a question asks for it, the unit of its value.
const SETTINGS: [(&str, &str, &str); 12] = [
    (
        "metrics port",
        "which port are the metrics of {} scraped from",
        "",
    ),
    (
        "request timeout",
        "how long may a request to {} run until it times out",
        " ms",
    ),
    (
        "connection pool size",
        "how many connections does the pool of {} hold",
        "",
    ),
    (
        "log retention",
        "for how long are the logs of {} retained",
        " days",
    ),
    ("retry limit", "what limits the retries of {}", " attempts"),
    (
        "cache expiry",
        "when do entries in the cache of {} expire",
        " minutes",
    ),
    (
        "rate limit",
        "what rate are callers of {} limited to",
        " per second",
    ),
    ("memory limit", "how much memory is {} limited to", " MiB"),
    ("replica count", "how many replicas of {} do we run", ""),
    (
        "backup interval",
        "how often do the backups of {} run, at what interval",
        " hours",
    ),
    (
        "batch size",
        "how many rows go into one batch of {}",
        " rows",
    ),
    (
        "queue depth alarm",
        "at what depth does the queue of {} raise an alarm",
        " messages",
    ),
];

const STATEMENTS: [&str; 6] = [
    "Decision: the {a} of {s} in {e} is {v}.",
    "We settled it with operations, {s} gets {v} as its {a} in {e}.",
    "I changed the chart so that the {a} for {s} on {e} is now {v}.",
    "Let us keep {v} for the {a} of {s} in {e}.",
    "Agreed in the review: {s} runs with a {a} of {v} in {e}.",
    "From today on {e} uses {v} as the {a} of {s}.",
];

const QUESTIONS: [&str; 5] = [
    "{q} in {e}?",
    "remind me, {q} on {e}?",
    "do you remember {q} in {e}",
    "{q}, I mean the one in {e}?",
    "what did we decide: {q} in {e}?",
];

const TALK: [&str; 14] = [
    "The {a} of {s} came up in the review and nobody objected.",
    "I looked at {s} in {e} and the dashboards are quiet.",
    "Before touching the {a} I want to see how {s2} behaves.",
    "The tests of {s} pass, {n} of them, and the linter is happy.",
    "{s} still imports the old helper from src/{p}/{f}.rs, I will remove it.",
    "We should not deploy {s} to {e} before {s2} is done.",
    "The error in {s} was a missing index, see src/{p}/{f}.rs line {n}.",
    "There is a note about the {a} in docs/{p}.md that is out of date.",
    "After the change {s} answers in {n} ms, which is fine.",
    "I ran the migration for {s} in {e}; it took {n} seconds.",
    "Nothing else depends on {f}_{p}, so renaming it is safe.",
    "The {a} is read once at start, so {s} needs a restart.",
    "Let me check what {e} has for the {a} before we go on.",
    "The owner of {s} asked for a summary of this week's work.",
];

const LOG: [&str; 6] = [
    "2026-03-0{d}T1{d}:22:{d}1Z INFO {s} env={e} handled request id={h} in {n}ms",
    "2026-03-0{d}T1{d}:23:{d}4Z WARN {s} retry attempt={d} after timeout={n} host={s2}.{e}.local",
    "2026-03-0{d}T1{d}:25:{d}7Z DEBUG {s2} pool connections={n} idle={d} queue depth={n}",
    "src/{p}/{f}.rs:{n}: fn {f}_{p}(batch: &[Row]) -> Result<(), Error>",
    "test {p}::{f}_keeps_rows_{n} ... ok",
    "{e} {s} replicas={d} memory={n}Mi port={n} cache=warm",
];

const NAMES: [&str; 24] = [
    "parser", "config", "router", "pool", "client", "handler", "token", "schema", "worker",
    "merge", "cursor", "window", "filter", "writer", "reader", "batch", "policy", "ticket",
    "limits", "report", "ledger", "invoice", "cache", "queue",
];

/// The subject of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct QuizTopic {
    service: (usize, usize),
    environment: usize,
    setting: usize,
}

/// Something to be said in a session.
#[derive(Clone, Debug)]
struct PlannedMessage {
    session: usize,
    /// The place in the session, from 0 to 1.
    depth: f64,
    text: String,
    role: &'static str,
    /// Which question it answers.
    answers: Option<usize>,
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuizQuestion {
    /// The text of the question.
    pub text: String,
    /// The value that it asks for.
    pub answer: String,
    /// The number of the session that states it.
    pub session: usize,
}

/// A session of the quiz.
#[derive(Clone, Debug, PartialEq)]
pub struct QuizSession {
    /// The id of the session.
    pub id: String,
    /// One `{role, content}` per line.
    pub text: String,
    /// The questions that it answers, each with the line that does.
    pub answers: Vec<(usize, usize)>,
}

/// Sessions and questions that a seed determines.
#[derive(Clone, Debug)]
pub struct Quiz {
    /// All questions, over all sessions.
    pub questions: Vec<QuizQuestion>,
    seed: u64,
    sessions: usize,
    bytes: usize,
    sayings: Vec<PlannedMessage>,
}

/// How many likes of an answer there are: five decisions, and the question as it was asked.
pub const DISTRACTORS: usize = 6;

impl Quiz {
    /// Returns a quiz of so many questions over sessions of so many bytes.
    pub fn new(seed: u64, sessions: usize, bytes: usize, questions: usize) -> Quiz {
        let mut quiz = Quiz {
            questions: Vec::new(),
            seed,
            sessions,
            bytes,
            sayings: Vec::new(),
        };
        let mut random = Random::new(seed);
        let mut taken = HashSet::new();
        while quiz.questions.len() < questions {
            let topic = QuizTopic::random(&mut random);
            let likes = topic.distractors();
            // Each decision is made once, wherever it is an answer or a like.
            if taken.contains(&topic) || likes.iter().any(|like| taken.contains(like)) {
                continue;
            }
            taken.insert(topic);
            taken.extend(&likes);
            quiz.add_question(topic, &likes, &mut random);
        }
        quiz
    }

    fn add_question(&mut self, topic: QuizTopic, likes: &[QuizTopic], random: &mut Random) {
        let answers = self.questions.len();
        let statement = *random.pick(&STATEMENTS).unwrap_or(&STATEMENTS[0]);
        let value = topic.random_value(random);
        let session = random.index(self.sessions);
        self.plan_message(
            session,
            topic.render_statement(statement, &value),
            "assistant",
            Some(answers),
            random,
        );
        for like in likes {
            let mut other = like.random_value(random);
            while other == value {
                other = like.random_value(random);
            }
            // Some stand in the same session as the answer.
            let place = match random.roll_percent(30) {
                true => session,
                false => random.index(self.sessions),
            };
            self.plan_message(
                place,
                like.render_statement(statement, &other),
                "assistant",
                None,
                random,
            );
        }
        let asked = format!(
            "What should the {} of {} in {} be?",
            topic.setting_name(),
            topic.service_name(),
            topic.environment_name()
        );
        self.plan_message(session, asked, "user", None, random);
        let form = random.pick(&QUESTIONS).unwrap_or(&QUESTIONS[0]);
        self.questions.push(QuizQuestion {
            text: form
                .replace("{q}", &topic.render_question())
                .replace("{e}", topic.environment_name()),
            answer: value,
            session,
        });
    }

    fn plan_message(
        &mut self,
        session: usize,
        text: String,
        role: &'static str,
        answers: Option<usize>,
        random: &mut Random,
    ) {
        self.sayings.push(PlannedMessage {
            session,
            depth: random.between(0, 1000) as f64 / 1000.0,
            text,
            role,
            answers,
        });
    }

    /// Returns how many sessions there are.
    pub fn session_count(&self) -> usize {
        self.sessions
    }

    /// Writes the session of that number, with its questions.
    pub fn write_session(&self, number: usize) -> QuizSession {
        let mut random = Random::new(self.seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9));
        let mut sayings: Vec<&PlannedMessage> = self
            .sayings
            .iter()
            .filter(|s| s.session == number)
            .collect();
        sayings.sort_by(|a, b| a.depth.total_cmp(&b.depth));
        let mut sayings = sayings.into_iter().peekable();
        let mut session = QuizSession {
            id: format!("quiz-{number:04}"),
            text: String::with_capacity(self.bytes + 8192),
            answers: Vec::new(),
        };
        let focus = ServiceFocus::random(&mut random);
        let mut line = 0;
        loop {
            let done = session.text.len() >= self.bytes;
            let depth = session.text.len() as f64 / self.bytes.max(1) as f64;
            while let Some(saying) = sayings.next_if(|s| done || s.depth <= depth) {
                let around = [
                    write_talk(&focus, &mut random, 2),
                    saying.text.clone(),
                    write_talk(&focus, &mut random, 2),
                ];
                session.answers.extend(saying.answers.map(|q| (q, line)));
                session.push_line(saying.role, &around.join(" "));
                line += 1;
            }
            if done {
                return session;
            }
            let (role, text) = write_filler(line, &focus, &mut random);
            session.push_line(role, &text);
            line += 1;
        }
    }
}

impl QuizSession {
    fn push_line(&mut self, role: &str, text: &str) {
        let _ = writeln!(self.text, "{}", json!({ "role": role, "content": text }));
    }
}

/// The services of a session: three, and now and then another.
struct ServiceFocus([(usize, usize); 3]);

impl ServiceFocus {
    fn random(random: &mut Random) -> ServiceFocus {
        ServiceFocus([(); 3].map(|()| QuizTopic::random(random).service))
    }

    fn pick_topic(&self, random: &mut Random) -> QuizTopic {
        let mut topic = QuizTopic::random(random);
        if random.roll_percent(90) {
            topic.service = random.pick(&self.0).copied().unwrap_or(topic.service);
        }
        topic
    }
}

fn write_filler(line: usize, focus: &ServiceFocus, random: &mut Random) -> (&'static str, String) {
    match line % 4 {
        0 => ("user", write_talk(focus, random, 2)),
        1 | 3 => ("assistant", write_talk(focus, random, 8)),
        _ => {
            let lines =
                (0..40).map(|_| fill_template(random.pick(&LOG).unwrap_or(&""), focus, random));
            let log: Vec<String> = lines.collect();
            ("tool", log.join("\n"))
        }
    }
}

fn write_talk(focus: &ServiceFocus, random: &mut Random, sentences: u64) -> String {
    let count = random.between(1, sentences);
    let said: Vec<String> = (0..count)
        .map(|_| fill_template(random.pick(&TALK).unwrap_or(&""), focus, random))
        .collect();
    said.join(" ")
}

/// Returns a template with its `{slots}` filled.
fn fill_template(template: &str, focus: &ServiceFocus, random: &mut Random) -> String {
    let mut out = String::with_capacity(template.len() + 40);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((slot, tail)) = after.split_once('}') else {
            break;
        };
        let topic = focus.pick_topic(random);
        match slot {
            "s" | "s2" => out.push_str(&topic.service_name()),
            "e" => out.push_str(topic.environment_name()),
            "a" => out.push_str(topic.setting_name()),
            "d" => _ = write!(out, "{}", random.between(1, 5)),
            "h" => out.push_str(&random.hex(8)),
            "n" => _ = write!(out, "{}", random.between(2, 9000)),
            _ => out.push_str(random.pick(&NAMES).unwrap_or(&"")),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn item_or_default<T: Copy + Default>(items: &[T], at: usize) -> T {
    items.get(at).copied().unwrap_or_default()
}

impl QuizTopic {
    fn random(random: &mut Random) -> QuizTopic {
        QuizTopic {
            service: (random.index(FIRST.len()), random.index(SECOND.len())),
            environment: random.index(ENVIRONMENTS.len()),
            setting: random.index(SETTINGS.len()),
        }
    }

    /// Returns two services that share a half of the name, two other environments, another setting.
    fn distractors(self) -> [QuizTopic; DISTRACTORS - 1] {
        let (first, second) = self.service;
        let moved = |by: usize| (self.environment + by) % ENVIRONMENTS.len();
        [
            QuizTopic {
                service: (first, (second + 1) % SECOND.len()),
                ..self
            },
            QuizTopic {
                service: ((first + 1) % FIRST.len(), second),
                ..self
            },
            QuizTopic {
                environment: moved(1),
                ..self
            },
            QuizTopic {
                environment: moved(2),
                ..self
            },
            QuizTopic {
                setting: (self.setting + 1) % SETTINGS.len(),
                ..self
            },
        ]
    }

    fn service_name(self) -> String {
        format!(
            "{}-{}",
            item_or_default(&FIRST, self.service.0),
            item_or_default(&SECOND, self.service.1)
        )
    }

    fn environment_name(self) -> &'static str {
        item_or_default(&ENVIRONMENTS, self.environment)
    }

    fn setting_name(self) -> &'static str {
        item_or_default(&SETTINGS, self.setting).0
    }

    fn random_value(self, random: &mut Random) -> String {
        format!(
            "{}{}",
            random.between(11, 9899),
            item_or_default(&SETTINGS, self.setting).2
        )
    }

    fn render_statement(self, statement: &str, value: &str) -> String {
        statement
            .replace("{a}", self.setting_name())
            .replace("{s}", &self.service_name())
            .replace("{e}", self.environment_name())
            .replace("{v}", value)
    }

    /// Returns the service as people say it, now and then without its hyphen.
    fn render_question(self) -> String {
        let service = match (self.service.0 + self.service.1) % 2 {
            0 => self.service_name(),
            _ => format!("the {}", self.service_name().replace('-', " ")),
        };
        item_or_default(&SETTINGS, self.setting)
            .1
            .replace("{}", &service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiz_is_the_same_every_time_and_its_answers_stand_where_it_says() {
        let quiz = Quiz::new(7, 12, 20_000, 10);
        let mut answered = 0;
        for number in 0..quiz.session_count() {
            let session = quiz.write_session(number);
            assert_eq!(session, Quiz::new(7, 12, 20_000, 10).write_session(number));
            assert!(session.text.len() >= 20_000);
            for (question, line) in session.answers {
                let question = &quiz.questions[question];
                let line = session.text.lines().nth(line).unwrap();
                assert!(line.contains(&question.answer), "{question:?}");
                assert!(!question.text.contains(&question.answer), "{question:?}");
                assert_eq!(question.session, number);
                answered += 1;
            }
        }
        assert_eq!(answered, 10);
    }
}
