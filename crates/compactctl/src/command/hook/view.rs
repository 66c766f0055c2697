//! `hook view`: the plugin of an agent asks what takes the place of a conversation.
//!
//! It is the one part of `hook` that may fail: the plugin then lets the agent write its own summary. No
//! model is asked, whatever the configuration says of summaries.

use std::path::PathBuf;

use bytes::Bytes;
use compact::format::Format;
use compact::hook::{HOOKS_FOLDER, HookStore, PendingCompaction};
use compact::manager::RequestOutcome;
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::{App, OpenedTranscript};
use crate::args::{
    BudgetArgs, CompactArgs, GlobalArgs, HookViewArgs, SummarizerArgs, SummarizerChoice,
    SummaryArgs, TranscriptArgs,
};
use crate::command::compact::compact_transcript;
use crate::failure::{Failure, FailureCode};
use crate::host::{CompactEvent, ViewRow};
use crate::input::InputSource;
use crate::output::ExistingFile;

/// Answers a plugin with the rows of a view.
pub(super) fn run(args: &HookViewArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    if args.agent != compact::hook::HookAgent::ClaudeCode {
        return Err(Failure::usage(
            format!("{} has no plugin that asks for a view", args.agent),
            "only claude-code has",
        ));
    }
    let given = InputSource::read(&PathBuf::from("-"))?;
    let event: CompactEvent = serde_json::from_slice(&given.bytes).map_err(|error| {
        Failure::from_error(FailureCode::Input, &error).with_context("the event on stdin")
    })?;
    let global = GlobalArgs {
        session: Some(event.session_name()),
        ..global.clone()
    };
    let writer = SummarizerArgs {
        summarizer: Some(SummarizerChoice::Extractive),
        ..SummarizerArgs::default()
    };
    let app = App::load_with_flags(&global, writer.config_flags())?;
    let rows = compact_rows(&event, &app, &global)?;
    note_view(&event, &app);
    let mut payload = json!({ "messages": rows }).to_string().into_bytes();
    payload.push(b'\n');
    Ok(CommandAnswer::new(Value::Null, String::new()).with_payload(Some(payload)))
}

/// Lets the other hooks know that the model sees a view of ours, so that they do not repeat what is in it.
/// If that cannot be written, they do, which does no harm. They know nothing of sub-agents.
fn note_view(event: &CompactEvent, app: &App) {
    if event.agent_id.is_some() {
        return;
    }
    let hooks = app.data_directory().join(HOOKS_FOLDER);
    let shelf = HookStore::for_session(&hooks, event.cwd.as_deref(), &event.session_id);
    let pending = PendingCompaction {
        is_view: true,
        ..PendingCompaction::default()
    };
    let _ = shelf.set_pending(&pending);
}

/// The view of a conversation. A person who asks for a compaction of a conversation that is within the
/// policy's budget is given half of it.
fn compact_rows(
    event: &CompactEvent,
    app: &App,
    global: &GlobalArgs,
) -> Result<Vec<ViewRow>, Failure> {
    let body = Bytes::from(event.to_request_body().to_string());
    let source = InputSource {
        name: "the conversation".to_owned(),
        path: None,
        bytes: body,
    };
    let mut args = view_args(event);
    let opened = app.open_source(&args.subject, source)?;
    let mut outcome = compact_transcript(&args, app, global, (&opened, None))?;
    if let RequestOutcome::Unchanged { tokens, .. } = &outcome {
        args.goal.budget = Some(tokens.0 / 2);
        outcome = compact_transcript(&args, app, global, (&opened, None))?;
    }
    let refused = |reason: &str| Failure::new(FailureCode::Budget, reason);
    match outcome {
        RequestOutcome::Done(commit) => view_rows(event, &opened, &commit.compaction.view),
        RequestOutcome::Unchanged { .. } => Err(refused("there is nothing to leave out")),
        RequestOutcome::Declined { reason, .. } => Err(refused(&reason)),
    }
}

fn view_args(event: &CompactEvent) -> CompactArgs {
    CompactArgs {
        subject: TranscriptArgs {
            format: Some(Format::Anthropic),
            model: event.model().map(str::to_owned),
            ..TranscriptArgs::default()
        },
        output: None,
        existing: ExistingFile::Kept,
        append: false,
        goal: BudgetArgs::default(),
        manner: SummaryArgs {
            note: event.instructions.clone(),
            ..SummaryArgs::default()
        },
    }
}

fn view_rows(
    event: &CompactEvent,
    opened: &OpenedTranscript,
    view: &compact::message::View,
) -> Result<Vec<ViewRow>, Failure> {
    let parsed = &opened.parsed;
    let emitted = parsed.document.emit(&parsed.conversation, view)?;
    let body: Value = serde_json::from_slice(&emitted)
        .map_err(|error| Failure::from_error(FailureCode::Unexpected, &error))?;
    let messages = body.get("messages").and_then(Value::as_array);
    let rows = messages.and_then(|messages| event.read_view(messages));
    rows.ok_or_else(|| {
        Failure::new(
            FailureCode::Unexpected,
            "the view holds what a row of the agent cannot",
        )
    })
}
