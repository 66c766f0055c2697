//! `reset`: one session under the profile `hard-reset`, which another program drives.
//!
//! Commands come as lines of JSON on stdin; answers and events go out as lines of JSON on stdout. Who asks
//! the model is the other program. While the session compacts, a person's words are refused, the question how
//! it stands is answered, and everything else waits.

use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::Arc;

use compact::History;
use compact::event::{CallbackSink, EventSink};
use compact::format::Format;
use compact::policy::Profile;
use compact::reset::{InputState, ResetAnswer, ResetCommand, ResetSession};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::answer::{CommandAnswer, set_field};
use crate::app::{App, block_on};
use crate::args::{GlobalArgs, ResetArgs};
use crate::failure::Failure;
use crate::input::InputSource;
use crate::output;

/// One line on stdin.
#[derive(Deserialize)]
struct CommandLine {
    /// Comes back with the answer.
    #[serde(default)]
    id: Value,
    #[serde(flatten)]
    command: ResetCommand,
}

/// Drives a session until stdin ends.
pub(super) fn run(args: &ResetArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let flags = args.config_flags();
    let app = App::load_with_fallback_profile(global, Profile::HardReset, flags)?;
    let base = match &args.file {
        Some(file) => History::from(InputSource::read(file)?.bytes),
        None => History::from("[]").in_format(Format::OpenAiChat),
    };
    let id = global
        .session
        .clone()
        .unwrap_or_else(|| "session".to_owned());
    let own: Arc<dyn EventSink> = Arc::new(CallbackSink::new(|event| {
        print_json(&serde_json::to_value(event).unwrap_or_default());
    }));
    block_on(async {
        let mut session = app.compact().reset_session_with_sink(id, base, Some(own))?;
        session.trace_within(app.caller_span().cloned());
        drive(&mut session).await?;
        Ok(session.flush().await?)
    })?;
    Ok(CommandAnswer::new(Value::Null, String::new()).with_payload(Some(Vec::new())))
}

/// A reader who left has seen enough.
fn print_json(line: &Value) {
    let _ = output::print_line(&line.to_string());
}

/// Answers command after command.
async fn drive(session: &mut ResetSession) -> Result<(), Failure> {
    let mut lines = read_lines();
    let input = session.watch_input();
    let mut waiting = VecDeque::new();
    loop {
        let line = match waiting.pop_front() {
            Some(line) => line,
            None => match lines.recv().await {
                Some(line) => line,
                None => return Ok(()),
            },
        };
        let command: CommandLine = match serde_json::from_str(&line) {
            Ok(command) => command,
            Err(error) => {
                print_json(&json!({"ok": false, "error": format!("not a command: {error}")}));
                continue;
            }
        };
        let id = command.id.clone();
        let answered = {
            let work = session.perform(command.command);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    answered = &mut work => break answered,
                    Some(line) = lines.recv() => waiting.extend(answer_meanwhile(line, &input)),
                }
            }
        };
        let mut answer = match answered {
            Ok(answer) => answer_json(&answer),
            Err(error) => {
                let failure = Failure::from(error);
                let status = session.status();
                json!({"ok": false, "error": failure.message(), "status": status})
            }
        };
        set_field(&mut answer, "id", id);
        print_json(&answer);
    }
}

fn answer_json(answer: &ResetAnswer) -> Value {
    let mut json = serde_json::to_value(answer).unwrap_or_default();
    set_field(&mut json, "ok", true);
    json
}

/// Lines on stdin, read by a thread that may wait for them.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines();
        for line in lines.map_while(Result::ok) {
            if !line.trim().is_empty() && sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// What comes while a command is at work: while the session compacts it takes no input and says so; what
/// can wait is returned.
fn answer_meanwhile(line: String, input: &watch::Receiver<InputState>) -> Option<String> {
    let state = *input.borrow();
    let command: CommandLine = match serde_json::from_str(&line) {
        Ok(command) if state == InputState::Compacting => command,
        _ => return Some(line),
    };
    let mut answer = match command.command {
        ResetCommand::Status => json!({"ok": true}),
        ResetCommand::Send { .. } => {
            json!({"ok": false, "error": "the session is being compacted; send it again"})
        }
        _ => return Some(line),
    };
    set_field(&mut answer, "id", command.id);
    set_field(&mut answer, "status", json!({"input": state}));
    print_json(&answer);
    None
}
