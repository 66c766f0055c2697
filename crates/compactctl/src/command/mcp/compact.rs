//! The tool `compact`: a transcript file made smaller, as the command does it.
//!
//! It reads a regular file and writes a new one, only where [`place`] allows: a model that is
//! talked into naming another file can overwrite nothing and make nothing that runs. stdin and stdout
//! are the protocol's.

use std::fs;
use std::path::{Path, PathBuf};

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place;
use super::tool::{self, ToolOutput};
use crate::app::App;
use crate::args::{BudgetArgs, CompactArgs, GlobalArgs, SummaryArgs, TranscriptArgs};
use crate::command::compact;
use crate::failure::{Failure, FailureCode};
use crate::output::ExistingFile;
use crate::report::number::group_digits;

/// What to compact.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompactToolInput {
    /// The transcript: the absolute path of a file
    path: String,
    /// The most tokens that the view's history may have; without it, half of where the policy compacts
    #[serde(default)]
    #[schemars(with = "u64")]
    budget: Option<u64>,
    /// A wish for this compaction, such as what matters most
    #[serde(default)]
    #[schemars(with = "String")]
    note: Option<String>,
    /// Where the view is written: the absolute path of a file that does not exist yet, in the transcript's
    /// folder, its name ending in .jsonl or .view.json
    #[serde(default)]
    #[schemars(with = "String")]
    output: Option<String>,
    /// Name the session, instead of the name that the file gives it
    #[serde(default)]
    #[schemars(with = "String")]
    session: Option<String>,
    /// Which session of a file that holds many, from 0
    #[serde(default)]
    #[schemars(with = "u64")]
    session_index: Option<usize>,
    /// Take the whole transcript, not what follows its last compaction
    #[serde(default)]
    whole: bool,
}

/// What was done.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct CompactToolOutput {
    /// compacted, or unchanged where the history is within its budget
    outcome: String,
    /// What `remember`, `expand` and `compactctl verify` call this compaction; absent if unchanged
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    receipt_id: Option<String>,
    /// The session
    session_id: String,
    /// History before
    tokens_before: u64,
    /// History after
    tokens_after: u64,
    /// What it was to fit into
    budget: u64,
    /// What became of the names, numbers, decisions and errors of the part that was summarized
    retention: RetentionCounts,
    /// N of the rolling summary
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    summary_version: Option<u64>,
    /// Where the view was written
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    output: Option<PathBuf>,
    /// Why it was left unchanged though it is over its budget
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    reason: Option<String>,
}

/// Counts of what was worth keeping.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct RetentionCounts {
    /// kept ÷ anchors; absent when nothing worth keeping was found
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    score: Option<f64>,
    /// What was worth keeping
    anchors: u64,
    /// In the view
    kept: u64,
    /// Not in the view, but in the archive
    recoverable: u64,
    /// In neither
    lost: u64,
}

impl tool::ToolInput for CompactToolInput {
    const NAME: &'static str = "compact";
    const ABOUT: &'static str = include_str!("../../../templates/mcp/compact.md");
    type ToolOutput = CompactToolOutput;

    fn annotations() -> ToolAnnotations {
        ToolAnnotations::new().read_only(false).destructive(false)
    }

    fn run_command(self, app: &App, global: &GlobalArgs) -> Result<CompactToolOutput, Failure> {
        let input = readable_file(&self.path)?;
        let output = self.output.as_deref();
        let output = output.map(|name| place::find_output(name, &input, app.data_directory()));
        let args = CompactArgs {
            subject: TranscriptArgs {
                file: input,
                session_index: self.session_index,
                whole: self.whole,
                ..TranscriptArgs::default()
            },
            output: output.transpose()?,
            existing: ExistingFile::Kept,
            append: false,
            goal: BudgetArgs {
                budget: self.budget,
                target: None,
            },
            manner: SummaryArgs {
                note: self.note,
                ..SummaryArgs::default()
            },
        };
        let global = GlobalArgs {
            session: self.session.or_else(|| global.session.clone()),
            ..global.clone()
        };
        let done: CompactToolOutput = tool::parse_json(compact::run(&args, app, &global)?.json)?;
        Ok(CompactToolOutput {
            session_id: tool::shorten_name(&done.session_id),
            ..done
        })
    }
}

/// A file that reading comes to an end of.
fn readable_file(name: &str) -> Result<PathBuf, Failure> {
    let help = "pass the absolute path of a transcript file";
    let path = absolute_path(name, help)?;
    match fs::metadata(&path) {
        Ok(found) if found.is_file() => Ok(path),
        Ok(_) => Err(Failure::usage(format!("{name} is not a file"), help)),
        Err(error) => Err(Failure::from_error(FailureCode::Input, &error)
            .with_context(&format!("cannot read {name}"))
            .help(help)),
    }
}

/// The path that a name stands for; `-` names none.
pub(super) fn absolute_path(name: &str, help: &str) -> Result<PathBuf, Failure> {
    match std::path::absolute(Path::new(name)) {
        Ok(path) if name != "-" => Ok(path),
        _ => Err(Failure::usage(format!("'{name}' names no file"), help)),
    }
}

impl ToolOutput for CompactToolOutput {
    fn text(&self) -> String {
        let session = tool::quote_name(&self.session_id);
        let [before, after, budget] =
            [self.tokens_before, self.tokens_after, self.budget].map(group_digits);
        let written = match &self.output {
            Some(path) => format!("written to {}", path.display()),
            None => "not written: name an output for that".to_owned(),
        };
        let Some(receipt) = &self.receipt_id else {
            let why = match &self.reason {
                Some(reason) => format!("the summarizer failed: {reason}"),
                None => format!("a history of {before} tokens is within its budget of {budget}"),
            };
            return format!(
                "session {session} is unchanged: {why}\nthe transcript as it is: {written}\n"
            );
        };
        let RetentionCounts {
            kept,
            anchors,
            recoverable,
            lost,
            ..
        } = self.retention;
        format!(
            "session {session}: a history of {before} tokens is {after} now (budget {budget})\n\
             kept {kept} of {anchors} things worth keeping; {recoverable} more are in the archive, {lost} are lost\n\
             receipt {receipt}: `remember` shows its summary, `recall` and `expand` reach the original\n\
             the view: {written}\n"
        )
    }
}
