//! The sessions in `examples/`, each with its answer key: what `cargo xtask examples` writes.

use crate::generate::{self, AnswerKey, GeneratedSession};

/// A file of `examples/`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleFile {
    /// Its name in the folder.
    pub name: &'static str,
    /// The content of the file.
    pub content: String,
}

/// Returns the sessions: of an API that is changed, of a customer, of a literature review.
pub fn sessions() -> [GeneratedSession; 3] {
    [
        generate::coding_session(11, 150_000),
        generate::support_session(12, 20_000),
        generate::research_session(13, 60_000),
    ]
}

/// Returns every file of the folder.
pub fn all_files() -> Vec<ExampleFile> {
    let [coding, support, research] = sessions();
    [
        session_files("coding-session.jsonl", "coding-session.facts.json", coding),
        session_files(
            "support-session.json",
            "support-session.facts.json",
            support,
        ),
        session_files(
            "research-session.jsonl",
            "research-session.facts.json",
            research,
        ),
    ]
    .concat()
}

fn session_files(
    session: &'static str,
    facts: &'static str,
    content: GeneratedSession,
) -> [ExampleFile; 2] {
    [
        ExampleFile {
            name: facts,
            content: render_key(&content.planted),
        },
        ExampleFile {
            name: session,
            content: content.text,
        },
    ]
}

/// Returns one fact per line, so that a change of the generator can be reviewed.
fn render_key(planted: &AnswerKey) -> String {
    let facts: Vec<String> = planted
        .facts
        .iter()
        .filter_map(|f| serde_json::to_string(f).ok())
        .collect();
    format!(
        "{{\"entries\": {}, \"facts\": [\n{}\n]}}\n",
        planted.entries,
        facts.join(",\n")
    )
}
