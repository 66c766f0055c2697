//! Typed facts: what was asked, ruled, decided, done to files, run, and what failed.
//!
//! Each fact is a quotation with its source; nothing is paraphrased. Lists are bounded by keeping
//! the newest, which merges like a sum. What a later fact does to an earlier one (a fix, a
//! superseded rule, a finished step) is not decided here but when the ledger is told.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answer::{self, AskedFor};
use super::call_field::CallFields;
use super::cue;
use super::diffed_file::{DiffedFile, diffed_files, may_show_diff};
use super::entity::{BlockPlace, Voice};
use super::file::{FileAct, FileFact, FileTable};
use super::language::{LanguageCue, TextLanguage, text_language};
use super::reading::BlockReading;
use super::revocation::KeptRevocations;
use super::scan::{NameKind, scan_names};
use super::sentence::{SentencePlace, clip, clip_lines, split_sentences};
use super::task::{self, BackgroundTask, ShownEnd, TaskEnd};
use crate::message::{Block, Entry, EntryKind, plain_tool_name};
use crate::speech::{PastedParts, Speech, attribute_speech, is_letter};

/// A quotation with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The entry's ordinal.
    pub ordinal: u32,
    /// Who said it.
    pub voice: Voice,
    /// The words, on one line.
    pub text: Box<str>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRunOutcome {
    /// No answer is known.
    Pending,
    /// It answered and nothing says that it failed.
    Ok,
    /// It failed; the line that says why.
    Failed(Box<str>),
    /// The person refused it; their reason, or nothing.
    Refused(Box<str>),
}

/// A tool call that ran something or failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRun {
    /// The ordinal of the call.
    pub ordinal: u32,
    /// The command, or the tool and its first argument.
    pub text: Box<str>,
    /// The file that it names, if it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
    /// The block that answered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<BlockPlace>,
    /// How it ended by its answer, where that is no content of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Box<str>>,
    /// How it ended.
    pub outcome: ToolRunOutcome,
}

/// One step of a plan that the model keeps through a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is to be done.
    pub text: Box<str>,
    /// Whether it is finished, or given up.
    pub done: bool,
    /// Whether it is being done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
}

/// The newest plan; an older one is history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskPlan {
    /// The ordinal of the call that wrote it.
    pub ordinal: u32,
    /// Its steps.
    pub steps: Vec<PlanStep>,
}

/// Steps that are kept of a plan.
const STEPS: usize = 512;

impl TaskPlan {
    /// A plan of these steps; of a very long one those that are open, as far as there is room.
    fn from_steps(ordinal: u32, mut steps: Vec<PlanStep>) -> TaskPlan {
        if steps.len() > STEPS {
            steps.retain(|step| !step.done);
            steps.truncate(STEPS);
        }
        TaskPlan { ordinal, steps }
    }
}

/// The typed facts of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// What the user said, message by message, with its line breaks; long ones as far as their head.
    pub requests: Vec<Fact>,
    /// What the model said, in the same way, and what other agents reported to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<Fact>,
    /// Which of the replies are summaries of what was said before them, by their ordinals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<u32>,
    /// Sentences of the user or the system that rule what may be done.
    pub rules: Vec<Fact>,
    /// How many of the requests are in a language whose rules are not recognised.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheard_requests: u32,
    /// How many of the oldest rules left that list, which is bounded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rules_left_out: u32,
    /// Sentences of the user that allow what a rule may have forbidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Fact>,
    /// Sentences in which the model decides something or gives a cause.
    pub decisions: Vec<Fact>,
    /// Sentences in which the user or the model names what is left to do.
    pub open: Vec<Fact>,
    /// Sentences of the model and short answers of tools that say something is finished.
    #[serde(default)]
    pub done: Vec<Fact>,
    /// Calls that brought something into being, with the id that the tool gave it.
    #[serde(default)]
    pub made: Vec<Fact>,
    /// Files, the most recently touched last.
    pub files: Vec<FileFact>,
    /// Files of the diffs that tools showed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<DiffedFile>,
    /// Commands and failed calls.
    pub runs: Vec<ToolRun>,
    /// The newest plan.
    pub plan: TaskPlan,
    /// Tasks that were started in the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<BackgroundTask>,
    /// The news that such tasks ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ends: Vec<TaskEnd>,
    /// What of all that no longer holds.
    #[serde(skip)]
    pub(crate) revocations: KeptRevocations,
}

const REQUESTS: usize = 512;
const REPLIES: usize = 1024;
const RULES: usize = 1024;
const RELEASES: usize = 128;
const DECISIONS: usize = 512;
const OPEN: usize = 128;
const DONE: usize = 256;
const MADE: usize = 128;
const DIFFS: usize = 256;
const RUNS: usize = 512;
const TASKS: usize = 128;
const REQUEST_CHARS: usize = 8_000;
const REPLY_CHARS: usize = 4_000;
/// A summary that another program wrote tells a whole session.
const SUMMARY_CHARS: usize = 16_000;
const SENTENCE_CHARS: usize = 320;
const RULE_CHARS: usize = 640;
/// Words beside a tool's answer that are longer are what the tool read.
const BESIDE: usize = 1_000;
/// How the line begins by which a host names the agent that reports.
const AGENT_IDS: [&str; 4] = ["task_id: ", "agentId: ", "agent_id: ", "session_id: "];
const COMMAND_CHARS: usize = 200;
const END_CHARS: usize = 120;
/// An answer that is longer is a listing, not the news of one thing.
const ANSWER: usize = 400;

/// What a sentence does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SentenceKind {
    /// It puts work off, or names what is left.
    Open,
    /// It rules what may be done.
    Rule,
    /// It allows what may have been forbidden.
    Release,
    /// It says that something is finished.
    Done,
    /// It decides, or gives a cause.
    Decision,
}

impl SentenceKind {
    /// What a sentence does in the mouth of who says it; `None` when it does nothing in particular.
    fn of_sentence(
        voice: Voice,
        sentence: &str,
        place: SentencePlace,
        language: TextLanguage,
    ) -> Option<SentenceKind> {
        // What a person quotes is not what they say.
        let said = match voice {
            Voice::User => cue::without_quotations(sentence),
            _ => Cow::Borrowed(sentence),
        };
        let kind = SentenceKind::of_english(voice, &said, place)
            .or_else(|| SentenceKind::of_language(voice, &said, language));
        let instructs = matches!(kind, Some(SentenceKind::Rule | SentenceKind::Release));
        kind.filter(|_| voice != Voice::User || !instructs || cue::is_own_order(&said))
    }

    /// What a sentence does by the cues of a language other than English.
    fn of_language(voice: Voice, sentence: &str, language: TextLanguage) -> Option<SentenceKind> {
        let shows = |cue| language.shows(cue, sentence);
        let is_question = sentence.ends_with(['?', '？', '؟']);
        if is_question || sentence.chars().count() > SENTENCE_CHARS {
            return None;
        }
        match voice {
            Voice::User | Voice::Model if shows(LanguageCue::Postponement) => {
                Some(SentenceKind::Open)
            }
            Voice::User | Voice::System
                if shows(LanguageCue::Rule) || shows(LanguageCue::Revision) =>
            {
                Some(SentenceKind::Rule)
            }
            Voice::Model if shows(LanguageCue::Finished) => Some(SentenceKind::Done),
            Voice::User | Voice::Model if shows(LanguageCue::Decision) => {
                Some(SentenceKind::Decision)
            }
            _ => None,
        }
    }

    fn of_english(voice: Voice, sentence: &str, place: SentencePlace) -> Option<SentenceKind> {
        match voice {
            Voice::User | Voice::Model if cue::is_postponement(sentence) => {
                Some(SentenceKind::Open)
            }
            Voice::User | Voice::System
                if place == SentencePlace::RuleList || cue::is_rule(sentence) =>
            {
                Some(SentenceKind::Rule)
            }
            Voice::User if cue::is_release(sentence) => Some(SentenceKind::Release),
            Voice::Model if cue::is_completion(sentence) => Some(SentenceKind::Done),
            Voice::User | Voice::Model if cue::is_decision(sentence) => {
                Some(SentenceKind::Decision)
            }
            Voice::Model if cue::is_open_work(sentence) => Some(SentenceKind::Open),
            _ => None,
        }
    }

    /// How many characters of it are kept. A rule is one with its last words only.
    fn most_chars(self) -> usize {
        match self {
            SentenceKind::Rule | SentenceKind::Release => RULE_CHARS,
            SentenceKind::Open | SentenceKind::Done | SentenceKind::Decision => SENTENCE_CHARS,
        }
    }
}

/// Whether words may stand in one message with a tool's answer: a person's who spoke meanwhile, or a client's. They are told,
/// and rule nothing.
fn may_stand_beside_result(reading: &BlockReading<'_>) -> bool {
    reading.voice == Voice::Tool
        && reading.text.len() <= BESIDE
        && !reading.text.trim().is_empty()
        && attribute_speech(&reading.text) != Speech::Host
}

/// Bytes at either end of a message in which rules are looked for: nobody typed more, and what stands in the middle is
/// quoted at most.
const READ_ENDS: usize = 1 << 19;

/// The parts of a person's message that are read sentence by sentence: all of it, or its ends.
fn read_parts(text: &str) -> impl Iterator<Item = &str> {
    let parts = match text.len() <= 2 * READ_ENDS {
        true => (text, None),
        false => {
            let head = text.floor_char_boundary(READ_ENDS);
            let tail = text.ceil_char_boundary(text.len() - READ_ENDS);
            (text.get(..head).unwrap_or(text), text.get(tail..))
        }
    };
    [Some(parts.0), parts.1].into_iter().flatten()
}

/// Two sentences of one message as they follow each other.
fn join_sentences<'t>(first: Option<&str>, second: &'t str) -> Cow<'t, str> {
    match first {
        Some(first) if second.is_empty() => Cow::Owned(first.to_owned()),
        Some(first) => Cow::Owned(format!("{first} {second}")),
        None => Cow::Borrowed(second),
    }
}

/// Collects the facts of consecutive entries.
#[derive(Default)]
pub(super) struct FactCollector {
    facts: Facts,
    files: FileTable,
    /// What calls would do to files whose answer is not read yet, by the place of their run.
    unanswered_files: BTreeMap<usize, Vec<FileFact>>,
    runs_by_call: HashMap<String, usize, foldhash::fast::FixedState>,
    /// Calls that are about a task in the background, with its id.
    task_calls: HashMap<String, String, foldhash::fast::FixedState>,
    /// Calls that ask something of the person.
    asking_calls: HashMap<String, AskedFor, foldhash::fast::FixedState>,
    /// Calls that give work to another agent.
    agent_calls: HashSet<String, foldhash::fast::FixedState>,
    /// The entry in whose words something was pasted that no mark closed: its further blocks belong to it.
    open_paste: Option<u32>,
    /// The entry that was looked through for results last, and whether it holds some: it may have very many blocks.
    results_in: Option<(u32, bool)>,
}

impl FactCollector {
    /// Takes one block, read as `reading`, and says whether its words may be quoted: a plan may not,
    /// since only its newest state is true.
    pub(super) fn collect_block(
        &mut self,
        ordinal: u32,
        entry: &Entry,
        part: u16,
        block: &Block,
        reading: &BlockReading<'_>,
    ) -> bool {
        match block {
            Block::Text(_) => {
                self.collect_notice(ordinal, reading);
                self.collect_words(ordinal, entry, reading);
            }
            Block::ToolCall {
                id,
                name,
                arguments,
            } => {
                if let Some(steps) = parse_steps(arguments) {
                    self.facts.plan = TaskPlan::from_steps(ordinal, steps);
                    return false;
                }
                if let Some(asked) = answer::asked_for(name) {
                    self.asking_calls.insert(id.clone(), asked);
                }
                if answer::is_agent_tool(name) {
                    self.agent_calls.insert(id.clone());
                }
                let call = CallFields::from_call(&reading.text);
                if let Some(task) = task::task_of_call(&call) {
                    self.task_calls.insert(id.clone(), task.to_owned());
                }
                let name = plain_tool_name(name);
                self.collect_call(ordinal, &name, &call, arguments);
                self.runs_by_call
                    .insert(id.clone(), self.facts.runs.len() - 1);
            }
            Block::ToolResult {
                call,
                content,
                is_error,
            } => {
                let place = BlockPlace { ordinal, part };
                let outcome = outcome(content, *is_error, entry);
                self.collect_answer(call, place, content, outcome, reading);
                match entry.meta.refused {
                    true => self.collect_refusal(ordinal, call, content),
                    false => self.collect_person_answer(ordinal, call, content, *is_error),
                }
                self.collect_task(ordinal, call, content);
                if self.agent_calls.contains(call) && !*is_error {
                    self.collect_report(ordinal, &reading.text);
                }
            }
            Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => {}
        }
        true
    }

    /// The facts, with bounded lists.
    pub(super) fn finish(mut self) -> Facts {
        for file in self.unanswered_files.into_values().flatten() {
            self.files.touch(file);
        }
        self.facts.files = self.files.into_files();
        self.facts.end_background_runs();
        self.facts.bound_lists();
        self.facts
    }

    /// Takes a tool's answer: how the run ended, what it made, what it says is finished.
    fn collect_answer(
        &mut self,
        call: &str,
        place: BlockPlace,
        content: &str,
        outcome: ToolRunOutcome,
        reading: &BlockReading<'_>,
    ) {
        let Some(&at) = self.runs_by_call.get(call) else {
            return;
        };
        let Some(run) = self.facts.runs.get_mut(at) else {
            return;
        };
        // What failed or was refused changed nothing, and a short complaint is no file.
        let is_done = outcome == ToolRunOutcome::Ok;
        let is_read = content.len() > COMPLAINT_BYTES;
        let files = self.unanswered_files.remove(&at).into_iter().flatten();
        for file in files.filter(|file| is_done || is_read && file.act == FileAct::Read) {
            self.files.touch(file);
        }
        let is_hidden = is_done && run.hides_failure() && cue::reports_failure(&reading.text);
        run.outcome = match is_hidden {
            true => ToolRunOutcome::Failed(clip(&cue::complaint(content), SENTENCE_CHARS).into()),
            false => outcome,
        };
        run.answer = Some(place);
        if run.path.is_none() && may_show_diff(&run.text) {
            self.facts
                .diffs
                .extend(diffed_files(run.ordinal, &reading.text));
        }
        run.end = match run.path {
            Some(_) => None,
            None => ending(&reading.text),
        };
        if run.outcome != ToolRunOutcome::Ok || content.len() > ANSWER {
            return;
        }
        let fact = |text: String| Fact {
            ordinal: run.ordinal,
            voice: Voice::Tool,
            text: text.into(),
        };
        if cue::is_creation(&run.text, content) && gives_id(&reading.text, &run.text) {
            let (call, answer) = (clip(&run.text, 80), clip(&reading.text, 120));
            self.facts.made.push(fact(format!("{call} → {answer}")));
        }
        if let Some(line) = reading.text.lines().find(|line| cue::is_completion(line)) {
            self.facts.done.push(fact(clip(line, SENTENCE_CHARS)));
        }
    }

    /// Returns whether an entry holds results of tools.
    fn find_results(&mut self, ordinal: u32, entry: &Entry) -> bool {
        match self.results_in {
            Some((of, holds_results)) if of == ordinal => holds_results,
            _ => {
                let holds_results = entry.has_results();
                self.results_in = Some((ordinal, holds_results));
                holds_results
            }
        }
    }

    fn collect_words(&mut self, ordinal: u32, entry: &Entry, reading: &BlockReading<'_>) {
        let whole = |text: &str, chars| Fact {
            ordinal,
            voice: reading.voice,
            text: clip_lines(text, chars).into(),
        };
        if reading.voice == Voice::User && self.open_paste == Some(ordinal) {
            let pasted = reading.text.trim();
            return self.push_request(ordinal, &format!("[pasted: {pasted}]"));
        }
        let holds_results = self.find_results(ordinal, entry);
        let is_own = reading.voice == Voice::User && entry.meta.kind == EntryKind::Message;
        if is_own && !holds_results && !cue::is_thanks(&reading.text) {
            self.facts
                .requests
                .push(whole(&reading.text, REQUEST_CHARS));
        }
        if holds_results && may_stand_beside_result(reading) {
            self.facts.requests.push(whole(&reading.text, BESIDE));
        }
        if reading.voice == Voice::Model {
            let is_digest = entry.meta.kind == EntryKind::ForeignSummary;
            self.facts.digests.extend(is_digest.then_some(ordinal));
            let chars = match is_digest {
                true => SUMMARY_CHARS,
                false => REPLY_CHARS,
            };
            self.facts.replies.push(whole(&reading.text, chars));
        }
        match reading.voice {
            Voice::User => {
                for part in read_parts(&reading.text) {
                    self.collect_own_sentences(ordinal, part);
                }
            }
            voice @ (Voice::System | Voice::Model) => {
                let language = text_language(&reading.text);
                self.collect_sentences(ordinal, voice, &reading.text, language);
            }
            // What others say rules, decides and finishes nothing.
            Voice::Host | Voice::Call | Voice::Tool => {}
        }
    }

    /// Takes what a person says of their own: what they pasted, quote or doubt orders nothing.
    fn collect_own_sentences(&mut self, ordinal: u32, text: &str) {
        let pasted = PastedParts::find(text);
        if pasted.is_open {
            self.open_paste = Some(ordinal);
        }
        let own = pasted.replace(text, |_| "\n\n".to_owned());
        let language = text_language(&own);
        let is_unheard = matches!(language, TextLanguage::Unknown);
        self.facts.unheard_requests += u32::from(is_unheard);
        let (rules, releases) = (self.facts.rules.len(), self.facts.releases.len());
        self.collect_sentences(ordinal, Voice::User, &own, language);
        if is_letter(&own) || split_sentences(&own).any(|(sentence, _)| cue::is_doubt(&sentence)) {
            self.facts.rules.truncate(rules);
            self.facts.releases.truncate(releases);
        }
    }

    /// Takes the sentences of a text that rule, decide, put off or finish something.
    fn collect_sentences(
        &mut self,
        ordinal: u32,
        voice: Voice,
        text: &str,
        language: TextLanguage,
    ) {
        let fact = |text: &str, chars| Fact {
            ordinal,
            voice,
            text: clip(text, chars).into(),
        };
        let mut sentences = split_sentences(text).peekable();
        let mut before: Option<Cow<'_, str>> = None;
        while let Some((sentence, place)) = sentences.next() {
            let kind = SentenceKind::of_sentence(voice, &sentence, place, language);
            let text = match kind {
                Some(SentenceKind::Rule) if cue::points_back(&sentence) => {
                    join_sentences(before.as_deref(), &sentence)
                }
                Some(SentenceKind::Release) => {
                    let next = sentences.peek().map(|(next, _)| &**next);
                    let order = next.filter(|next| !cue::is_rule(next) && !next.ends_with('?'));
                    join_sentences(Some(&sentence), order.unwrap_or(""))
                }
                _ => Cow::Borrowed(&*sentence),
            };
            if let Some(kind) = kind {
                let fact = fact(&text, kind.most_chars());
                self.facts.list_of(kind).push(fact);
            }
            // What rules has a line of its own to be found in; a heading says nothing by itself.
            let has_own_line = kind == Some(SentenceKind::Rule) || sentence.ends_with(':');
            before = (!has_own_line).then_some(sentence);
        }
    }

    /// Takes why a person refused a call.
    fn collect_refusal(&mut self, ordinal: u32, call: &str, content: &str) {
        let run = self
            .runs_by_call
            .get(call)
            .and_then(|at| self.facts.runs.get(*at));
        let Some((run, refusal)) = run.zip(answer::read_refusal(content)) else {
            return;
        };
        if !refusal.reason.is_empty() {
            let refused = clip(&run.text, 120);
            self.push_request(ordinal, &format!("(refused {refused}) {}", refusal.reason));
            self.collect_own_sentences(ordinal, &refusal.reason);
        }
    }

    /// Takes what a person answered through a tool that asks.
    fn collect_person_answer(&mut self, ordinal: u32, call: &str, content: &str, is_error: bool) {
        match self.asking_calls.get(call) {
            Some(AskedFor::Answer) if !is_error => {
                for answer in answer::read_answers(content) {
                    self.push_request(ordinal, &answer.quote());
                    self.collect_own_sentences(ordinal, &answer.words);
                }
            }
            Some(AskedFor::PlanApproval) if answer::is_approval(content) => {
                self.push_request(ordinal, "(approved the plan)");
            }
            _ => {}
        }
    }

    /// Takes what another agent reports: conclusions, as replies are.
    fn collect_report(&mut self, ordinal: u32, text: &str) {
        let is_tag = |line: &str| line.starts_with('<') && line.ends_with('>');
        let names_agent = |line: &str| AGENT_IDS.iter().any(|key| line.starts_with(key));
        let is_frame = |line: &&str| is_tag(line.trim()) || names_agent(line.trim());
        let lines = text.lines().filter(|line| !is_frame(line));
        let text = clip_lines(&lines.collect::<Vec<_>>().join("\n"), REPLY_CHARS);
        if !text.is_empty() {
            self.facts.replies.push(Fact {
                ordinal,
                voice: Voice::Tool,
                text: text.into(),
            });
        }
    }

    fn push_request(&mut self, ordinal: u32, text: &str) {
        self.facts.requests.push(Fact {
            ordinal,
            voice: Voice::User,
            text: clip_lines(text, REQUEST_CHARS).into(),
        });
    }

    /// Takes what an answer says of a task in the background: that one was started, or has ended.
    fn collect_task(&mut self, ordinal: u32, call: &str, content: &str) {
        let run = self
            .runs_by_call
            .get(call)
            .and_then(|at| self.facts.runs.get(*at));
        let Some(run) = run else { return };
        if let Some(id) = task::started_id(content) {
            self.facts.tasks.push(BackgroundTask {
                ordinal: run.ordinal,
                id: id.into(),
                text: run.text.clone(),
            });
        } else if let Some(id) = self.task_calls.get(call)
            && let Some(how) = task::end_of_call(&run.text, content)
        {
            let shown = task::ended_by_itself(&how).then(|| ShownEnd {
                outcome: run.outcome.clone(),
                end: run.end.clone(),
            });
            self.facts.task_ends.push(TaskEnd {
                ordinal,
                id: id.as_str().into(),
                how: how.into(),
                shown,
            });
        }
    }

    /// Takes what a host says of tasks in the background.
    fn collect_notice(&mut self, ordinal: u32, reading: &BlockReading<'_>) {
        if reading.voice == Voice::Host {
            let ends = task::ends_in_notice(ordinal, &reading.text);
            self.facts.task_ends.extend(ends);
        }
    }

    fn collect_call(&mut self, ordinal: u32, name: &str, call: &CallFields<'_>, arguments: &str) {
        let mut files = FileFact::from_call(ordinal, name, call, arguments);
        self.facts.runs.push(ToolRun {
            ordinal,
            text: command_text(name, call).into(),
            path: files.first().map(|file| file.path.clone()),
            answer: None,
            end: None,
            outcome: ToolRunOutcome::Pending,
        });
        files.extend(FileFact::from_shell(ordinal, call));
        if !files.is_empty() {
            self.unanswered_files
                .insert(self.facts.runs.len() - 1, files);
        }
    }
}

impl Facts {
    /// Adds the facts of a later stretch.
    pub(super) fn merge(&mut self, later: Facts) {
        self.revocations = KeptRevocations::default();
        self.requests.extend(later.requests);
        self.replies.extend(later.replies);
        self.digests.extend(later.digests);
        self.rules.extend(later.rules);
        self.unheard_requests += later.unheard_requests;
        self.rules_left_out += later.rules_left_out;
        self.releases.extend(later.releases);
        self.decisions.extend(later.decisions);
        self.open.extend(later.open);
        self.done.extend(later.done);
        self.made.extend(later.made);
        self.diffs.extend(later.diffs);
        self.runs.extend(later.runs);
        let mut files = FileTable::from_files(std::mem::take(&mut self.files));
        later.files.into_iter().for_each(|file| files.touch(file));
        self.files = files.into_files();
        self.tasks.extend(later.tasks);
        self.task_ends.extend(later.task_ends);
        if !later.plan.steps.is_empty() {
            self.plan = later.plan;
        }
        self.end_background_runs();
        self.bound_lists();
    }

    /// Gives commands that went on in the background the end that a later look at them showed: their own answer said no
    /// more than that they were begun.
    fn end_background_runs(&mut self) {
        let shown = self.task_ends.iter().filter(|end| end.shown.is_some());
        let ends: HashMap<&str, &TaskEnd> = shown.map(|end| (&*end.id, end)).collect();
        if ends.is_empty() {
            return;
        }
        for task in &self.tasks {
            let end = ends.get(&*task.id);
            let Some(shown) = end.filter(|end| end.ordinal > task.ordinal) else {
                continue;
            };
            let from = self.runs.partition_point(|run| run.ordinal < task.ordinal);
            let runs = self.runs.iter_mut().skip(from);
            let mut runs = runs.take_while(|run| run.ordinal == task.ordinal);
            if let Some(run) = runs.find(|run| run.text == task.text)
                && let Some(shown) = &shown.shown
            {
                run.outcome = shown.outcome.clone();
                run.end = shown.end.clone();
            }
        }
    }

    fn list_of(&mut self, kind: SentenceKind) -> &mut Vec<Fact> {
        match kind {
            SentenceKind::Open => &mut self.open,
            SentenceKind::Rule => &mut self.rules,
            SentenceKind::Release => &mut self.releases,
            SentenceKind::Done => &mut self.done,
            SentenceKind::Decision => &mut self.decisions,
        }
    }

    fn bound_lists(&mut self) {
        keep_last_saying(&mut self.rules);
        keep_last_saying(&mut self.releases);
        keep_last_saying(&mut self.decisions);
        keep_last_saying(&mut self.open);
        keep_last_saying(&mut self.done);
        // The first request is the task: it stays whatever comes after it.
        if self.requests.len() > REQUESTS {
            let surplus = self.requests.len() - REQUESTS;
            self.requests.drain(1..=surplus);
        }
        self.rules_left_out += self.rules.len().saturating_sub(RULES) as u32;
        truncate_to_newest(&mut self.rules, RULES);
        truncate_to_newest(&mut self.replies, REPLIES);
        truncate_to_newest(&mut self.digests, DIGESTS);
        truncate_to_newest(&mut self.releases, RELEASES);
        truncate_to_newest(&mut self.decisions, DECISIONS);
        truncate_to_newest(&mut self.open, OPEN);
        truncate_to_newest(&mut self.done, DONE);
        truncate_to_newest(&mut self.made, MADE);
        truncate_to_newest(&mut self.diffs, DIFFS);
        truncate_to_newest(&mut self.runs, RUNS);
        truncate_to_newest(&mut self.tasks, TASKS);
        truncate_to_newest(&mut self.task_ends, TASKS);
    }

    /// Returns the tasks in the background of which nobody said that they ended, and that nobody began again since.
    pub fn running_tasks(&self) -> impl Iterator<Item = &BackgroundTask> {
        let has_ended = |task: &BackgroundTask| {
            let mut ends = self.task_ends.iter().rev();
            ends.any(|end| end.id == task.id && end.ordinal > task.ordinal)
        };
        let is_over = move |task: &BackgroundTask| has_ended(task) || self.is_run_again(task);
        self.tasks.iter().filter(move |task| !is_over(task))
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Summaries by others that are known as such.
const DIGESTS: usize = 64;

fn truncate_to_newest<T>(list: &mut Vec<T>, cap: usize) {
    let surplus = list.len().saturating_sub(cap);
    list.drain(..surplus);
}

/// A sentence said twice is kept where it was said last.
fn keep_last_saying(facts: &mut Vec<Fact>) {
    let mut seen = HashSet::<&str, foldhash::fast::FixedState>::default();
    let is_last: Vec<bool> = facts.iter().rev().map(|f| seen.insert(&f.text)).collect();
    let mut is_last = is_last.into_iter().rev();
    facts.retain(|_| is_last.next().unwrap_or(true));
}

/// An answer of so few lines is told whole: one line of it would pass for all that came out.
const FEW_LINES: usize = 3;

/// How a command ended, by its answer: all of a short one, of others the last line that says something, if that is how
/// commands end.
fn ending(answer: &str) -> Option<Box<str>> {
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    let mut first = answer.lines().filter(says).map(str::trim);
    let few: Vec<&str> = first.by_ref().take(FEW_LINES).collect();
    let few = few.join("; ");
    if first.next().is_none() && few.chars().count() <= END_CHARS {
        return (!few.is_empty()).then(|| few.into());
    }
    let mut last = answer.lines().rev().take(8).filter(says);
    let line = last.find(|line| !cue::is_untested(line))?;
    let told = || passes_before(answer) + &clip(line, END_CHARS) + &untested(answer);
    cue::is_outcome(line).then(|| told().into())
}

/// Where a check says of each of its parts that it is well, how many did: the last of them is not all that passed.
fn passes_before(answer: &str) -> String {
    let is_pass = |line: &&str| line.trim_start().starts_with("ok ") || line.starts_with("ok\t");
    match answer.lines().filter(is_pass).count() {
        0 | 1 => String::new(),
        count => format!("{count} times ok, the last: "),
    }
}

/// Lines of a check that are told beside how it ended.
const UNTESTED_LINES: usize = 3;

/// What a check did not look at, behind how it ended: that it passed says nothing of it.
fn untested(answer: &str) -> String {
    let last = answer.get(answer.floor_char_boundary(answer.len().saturating_sub(CHECK_END))..);
    let lines = last.unwrap_or("").lines();
    let untested = lines.filter(|line| cue::is_untested(line));
    let told = untested.take(UNTESTED_LINES);
    told.map(|line| format!("; {}", clip(line, END_CHARS)))
        .collect()
}

/// Bytes at the end of an answer in which is looked for what a check left out.
const CHECK_END: usize = 4_000;

/// Whether an answer names an id that the call did not.
fn gives_id(answer: &str, call: &str) -> bool {
    let mut gives = false;
    scan_names(answer, &mut |kind, _, name| {
        let id = match kind {
            NameKind::Id | NameKind::Uuid | NameKind::Hash | NameKind::Url => true,
            // `job-4f7a`: words alone would be a name.
            NameKind::Slug => name.bytes().any(|b| b.is_ascii_digit()),
            _ => false,
        };
        gives |= id && !call.contains(name);
    });
    gives
}

/// Bytes of an answer that holds nothing but why a file was not read.
const COMPLAINT_BYTES: usize = 400;

/// How a tool's answer says the call ended. That the person refused it the wire must say: an answer that only reads so
/// may be anybody's, and is told in the tool's words.
fn outcome(content: &str, is_error: bool, entry: &Entry) -> ToolRunOutcome {
    let refusal = answer::read_refusal(content);
    if let Some(refusal) = refusal.as_ref().filter(|_| entry.meta.refused) {
        ToolRunOutcome::Refused(clip(&refusal.reason, SENTENCE_CHARS).into())
    } else if is_error || refusal.is_some() || cue::is_failure(content) {
        ToolRunOutcome::Failed(clip(&cue::complaint(content), SENTENCE_CHARS).into())
    } else {
        ToolRunOutcome::Ok
    }
}

pub(super) const COMMAND_KEYS: [&str; 4] = ["command", "cmd", "script", "code"];

fn command_text(name: &str, call: &CallFields<'_>) -> String {
    let body = call
        .value(&COMMAND_KEYS)
        .map(without_other_keys)
        .or_else(|| call.text.get(name.len()..))
        .unwrap_or("");
    let mut text = clip(name, COMMAND_CHARS) + ": ";
    let room = COMMAND_CHARS.saturating_sub(text.chars().count());
    text.push_str(&clip(body, room));
    text.truncate(text.trim_end().len());
    text
}

/// A command without the arguments that stand on lines behind it.
fn without_other_keys(command: &str) -> &str {
    let is_key = |line: &str| {
        line.split_once(": ").is_some_and(|(key, _)| {
            let named = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            named && key.len() >= 4
        })
    };
    let mut end = 0;
    for line in command.split_inclusive('\n') {
        if end > 0 && is_key(line) {
            break;
        }
        end += line.len();
    }
    command.get(..end).unwrap_or(command)
}

/// The steps of a plan in a call's arguments: objects with a status and a text.
fn parse_steps(arguments: &str) -> Option<Vec<PlanStep>> {
    memchr::memmem::find(arguments.as_bytes(), b"\"status\"")?;
    // Only what a step says is read into memory: a plan may be long.
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(arguments).ok()?;
    let mut written: Vec<&RawValue> = fields.into_values().collect();
    written.sort_by_key(|field| field.get().as_ptr() as usize);
    let lists = written.into_iter().filter_map(|field| {
        let items: Vec<&RawValue> = serde_json::from_str(field.get()).ok()?;
        Some(items)
    });
    let steps: Vec<PlanStep> = lists.flatten().filter_map(parse_step).collect();
    (!steps.is_empty()).then_some(steps)
}

/// Where a step says what is to be done, the most telling first.
const STEP_KEYS: [&str; 8] = [
    "content",
    "step",
    "title",
    "task",
    "description",
    "text",
    "name",
    "subject",
];

fn parse_step(item: &RawValue) -> Option<PlanStep> {
    let item: BTreeMap<String, &RawValue> = serde_json::from_str(item.get()).ok()?;
    let read = |key: &str| serde_json::from_str::<String>(item.get(key)?.get()).ok();
    let status = read("status")?.to_ascii_lowercase();
    let text = STEP_KEYS.iter().find_map(|key| read(key))?;
    let says = |words: &[&str]| words.iter().any(|word| status.contains(word));
    let done = says(&["complete", "done", "finish", "cancel", "closed", "skip"]);
    Some(PlanStep {
        text: clip(&text, COMMAND_CHARS).into(),
        done,
        active: !done && says(&["progress", "active", "doing", "started"]),
    })
}
