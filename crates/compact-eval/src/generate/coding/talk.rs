//! A user who talks: the same work as in any coding session, but what matters is said in passing, in every
//! kind of wording: facts, wishes, corrections, refusals, answers of three words. Each sentence of the user is
//! planted as it was said.

use super::super::author::Author;
use super::super::planted::PlantedKind;
use super::{CodingSession, FileId};

/// What a user comes out with between two pieces of work, by the grammar's names.
const SPOKEN: &[&str] = &[
    "spoken_fact",
    "spoken_fact",
    "spoken_preference",
    "spoken_correction",
    "spoken_refusal",
    "spoken_approval",
    "spoken_report",
    "spoken_reason",
    "spoken_aside",
];

/// Writes a session of at least so many bytes of text.
pub(crate) fn write_talk(author: Author<'_>, size: usize) -> CodingSession<'_> {
    let mut session = CodingSession::begin(author);
    session.open();
    while session.script.size < size {
        session.talk_through_item();
    }
    session.leave_unfinished();
    session
}

impl CodingSession<'_> {
    fn talk_through_item(&mut self) {
        let file = self.choose_file();
        self.request_in_passing(file);
        self.explore(file);
        self.answer_question();
        self.change_file(file);
        self.interject();
        self.run_tests(file);
        self.rule_alone();
        self.commit(file);
        self.interject();
    }

    fn request_in_passing(&mut self, file: FileId) {
        let path = self.path(file);
        let request = self.author.write_with("spoken_request", &[("path", &path)]);
        let more = self.speak();
        self.state(&[request, more]);
    }

    /// The user says one thing or two; the agent takes note and goes on.
    fn interject(&mut self) {
        let mut sentences = vec![self.speak()];
        if self.author.random.roll_percent(30) {
            sentences.push(self.speak());
        }
        self.state(&sentences);
        self.look_further();
    }

    /// The agent asks and gets a few words.
    fn answer_question(&mut self) {
        let question = self.author.write("agent_question");
        self.script.add_reply(question);
        let answer = self.author.write("short_answer");
        self.state(&[answer]);
    }

    /// The agent rules on something by itself, and a tool says something that reads like a rule.
    fn rule_alone(&mut self) {
        let ruling = self.author.write("agent_ruling");
        let call = self.shell_call("log_command", "tool_rule");
        self.script.add_assistant(None, Some(ruling), vec![call]);
    }

    fn speak(&mut self) -> String {
        let rule = self.author.random.pick(SPOKEN).copied();
        self.author.write(rule.unwrap_or("spoken_fact"))
    }

    fn state(&mut self, sentences: &[String]) {
        let spot = self.script.add_user(sentences.join(". "));
        for sentence in sentences {
            self.script
                .plant(spot, PlantedKind::Statement, sentence, &[sentence]);
        }
    }
}
