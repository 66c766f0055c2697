//! How many requests the sessions of a project make, measured across processes.
//!
//! A session that comes to its 1st, 2nd, 4th, 8th … request leaves an event in the catalog, below a name that stands for
//! its project: the folder that its agent says it works in, as a hash. Sessions that name none are one project. It is a
//! measure and no record: what cannot be read or written is not waited for, and costs no call.

use compact_core::cue_list::cue_lines;
use compact_core::message::{Conversation, Role};
use compact_core::trigger::economy::SessionLifetimes;
use serde_json::{Value, json};

use super::Manager;
use super::session_state::SessionState;

/// What opens the names that measures stand below.
const MEASURES: &str = "compact:lifetimes/";

const REACHED: &str = "compact.requests_reached";

/// Agents name their folder in the first messages that they send.
const OPENING_ENTRIES: usize = 4;

/// More events than this are added up into one for each step.
const MOST_EVENTS: usize = 512;

const FOLDER_CUES: &str = include_str!("../../templates/cues/working_directory.txt");

/// Returns whether a name in the catalog stands for a measure and not for a session.
pub fn is_measure(session: &str) -> bool {
    session.starts_with(MEASURES)
}

/// What is known of how long a session will go on.
#[derive(Clone, Debug)]
pub(super) struct MeasuredLifetime {
    /// The requests that it had made when it was taken up.
    before: u64,
    /// The last step that is counted.
    counted: Option<u32>,
    others: SessionLifetimes,
}

impl MeasuredLifetime {
    /// Returns the requests that were made, of which so many were seen here.
    fn requests(&self, seen: u64) -> u64 {
        self.before + seen
    }

    /// Returns how many requests are ahead by what other sessions did.
    pub(super) fn further_requests(&self, seen: u64) -> Option<f64> {
        self.others.further_requests(self.requests(seen))
    }
}

impl Manager {
    /// Looks up how long sessions of this project go on, and counts this one.
    pub(super) async fn measure_lifetime(&self, session: &mut SessionState) {
        let name = measure_name(&session.source);
        let seen = session.cache_history.requests;
        let mut lifetime = match session.lifetime.take() {
            Some(lifetime) => lifetime,
            None => {
                let before = count_answers(&session.source).saturating_sub(seen);
                MeasuredLifetime {
                    before,
                    counted: SessionLifetimes::find_step(before),
                    others: self.read_lifetimes(&name).await,
                }
            }
        };
        let now = SessionLifetimes::find_step(lifetime.requests(seen));
        if let Some(now) = now.filter(|_| now > lifetime.counted) {
            let first = lifetime.counted.map_or(0, |counted| counted + 1);
            for step in first..=now {
                lifetime.others.add(step, 1);
                let _ = self.catalog.save_event(&name, &reached(step, 1)).await;
            }
            lifetime.counted = Some(now);
        }
        session.lifetime = Some(lifetime);
    }

    async fn read_lifetimes(&self, name: &str) -> SessionLifetimes {
        let events = self.catalog.events(name).await.unwrap_or_default();
        let mut lifetimes = SessionLifetimes::default();
        for event in &events {
            let number = |key: &str| event.get(key).and_then(Value::as_u64);
            if let Some(step) = number("step").and_then(|step| u32::try_from(step).ok()) {
                lifetimes.add(step, number("sessions").unwrap_or(1));
            }
        }
        if events.len() > MOST_EVENTS {
            // What another process counts in this moment is lost: it is one session of hundreds.
            let _ = self.catalog.remove_session(name).await;
            for (step, sessions) in lifetimes.steps() {
                let _ = self
                    .catalog
                    .save_event(name, &reached(step, sessions))
                    .await;
            }
        }
        lifetimes
    }
}

fn reached(step: u32, sessions: u64) -> Value {
    json!({"event": REACHED, "step": step, "sessions": sessions})
}

/// Returns what a project's measure stands below.
fn measure_name(conversation: &Conversation) -> String {
    let folder = find_folder(conversation).unwrap_or_default();
    let hash = super::digest(folder.as_bytes());
    format!("{MEASURES}{}", hash.get(..16).unwrap_or(&hash))
}

/// Finds the folder that an agent says it works in: its project.
pub fn find_folder(conversation: &Conversation) -> Option<&str> {
    let opening = conversation.entries.iter().take(OPENING_ENTRIES);
    let texts = opening
        .filter(|entry| entry.role != Role::Assistant)
        .flat_map(|entry| &entry.blocks)
        .flat_map(|block| block.text_parts());
    texts.into_iter().find_map(|text| {
        let after = |cue: &str| text.split_once(cue).map(|(_, after)| after);
        let after = cue_lines(FOLDER_CUES).find_map(after)?;
        let folder = after.split(['\n', '<']).next()?.trim();
        (!folder.is_empty()).then_some(folder)
    })
}

/// Counts the answers of the model in a history: each was a request.
fn count_answers(conversation: &Conversation) -> u64 {
    let roles = conversation.entries.iter().map(|entry| entry.role);
    let mut last = None;
    roles
        .filter(|role| last.replace(*role) != Some(*role) && *role == Role::Assistant)
        .count() as u64
}

#[cfg(test)]
mod tests {
    use compact_core::message::Entry;

    use super::*;

    fn said(texts: &[(Role, &str)]) -> Conversation {
        Conversation {
            entries: texts
                .iter()
                .map(|(role, text)| Entry::from_text("", *role, *text))
                .collect(),
            ..Conversation::default()
        }
    }

    #[test]
    fn each_agent_names_its_folder() {
        for text in [
            "# Environment\n - Primary working directory: /home/a/ledger\n - Platform: linux",
            "<environment_context>\n  <cwd>/home/a/ledger</cwd>\n  <shell>bash</shell>",
            "<env>\n  Working directory: /home/a/ledger\n  Is directory a git repo: yes",
            "I'm currently working in the directory: /home/a/ledger\nHere is the folder structure",
        ] {
            let opening = said(&[(Role::System, "You help."), (Role::User, text)]);
            assert_eq!(find_folder(&opening), Some("/home/a/ledger"), "{text}");
        }
        assert_eq!(
            find_folder(&said(&[(Role::User, "Working directory: ")])),
            None
        );
        assert_eq!(
            find_folder(&said(&[(Role::Assistant, "<cwd>/a</cwd>")])),
            None
        );
    }

    #[test]
    fn an_answer_in_two_parts_is_one_request() {
        let history = said(&[
            (Role::User, "Go."),
            (Role::Assistant, "First."),
            (Role::Assistant, "Second."),
            (Role::User, "On."),
            (Role::Assistant, "Third."),
        ]);
        assert_eq!(count_answers(&history), 2);
    }
}
