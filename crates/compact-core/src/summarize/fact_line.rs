//! Facts as lines: what is still in force, what is open, what was done.
//!
//! Here the links between facts resolve: a rule that a later one takes back is left out, a failure
//! that a later run mended is told as mended, a finished step is told as done.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::SummaryNeighbours;
use super::finish::FinishedWork;
use super::release::rule_releases;
use super::revoke::{RevokedRules, without};
use super::root::RootDirectory;
use super::template::{SectionRank, SectionTopic, StyleTemplate};
use crate::cue_list::{PhraseList, cue_file};
use crate::ledger::{
    BackgroundTask, Fact, Facts, FailedRun, FileAct, FileFact, Ledger, PlanStep, ToolRun,
    ToolRunOutcome, Voice, Withdrawal, clip, is_completion, is_own_order, is_postponement,
    is_standing_rule, reports_passing, split_sentences,
};
use crate::reply::is_announcement;
use crate::speech::{PastedParts, leave_out_pasted};

/// One line of a section.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FactLine {
    pub topic: SectionTopic,
    /// Where it belongs in the session.
    pub ordinal: u32,
    /// The words, without provenance.
    pub text: String,
    /// The rule that the words release: they stand behind it.
    pub about: Option<u32>,
    /// Whether it is all that its message says.
    pub whole: bool,
    /// Whether it is of the kind that holds for the whole session, or for the step at hand.
    pub span: RuleSpan,
}

/// How long a rule is meant to hold, by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleSpan {
    Session,
    Step,
}

pub(super) fn new_fact_line(
    topic: SectionTopic,
    ordinal: u32,
    text: impl Into<String>,
) -> FactLine {
    FactLine {
        topic,
        ordinal,
        text: text.into(),
        about: None,
        whole: false,
        span: RuleSpan::Session,
    }
}

/// The share of the budget that the facts of a topic may take. Beside turns, which show names in their
/// place, the user's words and what the model concluded come first.
pub(super) fn topic_share(
    topic: SectionTopic,
    template: &StyleTemplate,
    company: SummaryNeighbours,
) -> f64 {
    if template.rank(topic) == Some(SectionRank::Lead) {
        return 0.3;
    }
    match (company, topic) {
        (
            SummaryNeighbours::Turns,
            SectionTopic::Goals
            | SectionTopic::Decisions
            | SectionTopic::Failures
            | SectionTopic::Done
            | SectionTopic::Made,
        ) => 0.2,
        (SummaryNeighbours::AgentSummary, SectionTopic::Rules) => 0.7,
        (_, SectionTopic::Goals) => 0.06,
        (_, SectionTopic::Rules) => 0.20,
        (_, SectionTopic::Open) => 0.12,
        (_, SectionTopic::Done | SectionTopic::Made | SectionTopic::Failures) => 0.06,
        (_, SectionTopic::State | SectionTopic::Plan) => 0.06,
        (_, SectionTopic::Decisions | SectionTopic::Files) => 0.05,
        (_, SectionTopic::Steps | SectionTopic::Code | SectionTopic::Story) => 0.10,
    }
}

/// How many times a line is worth what it is otherwise, where turns show names in their place.
const BESIDE_TURNS: f64 = 4.0;

/// What a line of a topic is worth by itself, next to the chance that a name is needed.
pub(super) fn topic_worth(topic: SectionTopic, company: SummaryNeighbours) -> f64 {
    let worth = match topic {
        SectionTopic::Goals | SectionTopic::Rules => 1.0,
        SectionTopic::Open => 0.4,
        SectionTopic::State => 0.4,
        SectionTopic::Failures => 0.25,
        SectionTopic::Plan | SectionTopic::Made => 0.22,
        SectionTopic::Done => 0.2,
        SectionTopic::Decisions | SectionTopic::Steps => 0.13,
        SectionTopic::Files | SectionTopic::Code | SectionTopic::Story => 0.06,
    };
    match company {
        SummaryNeighbours::Turns => worth * BESIDE_TURNS,
        SummaryNeighbours::Alone | SummaryNeighbours::AgentSummary => worth,
    }
}

/// All fact lines of a ledger, in the order in which they deserve room.
pub(super) fn fact_lines(
    ledger: &Ledger,
    revoked: &RevokedRules<'_>,
    root: &RootDirectory<'_>,
    is_shown: &dyn Fn(&str) -> bool,
) -> Vec<FactLine> {
    let facts = &ledger.facts;
    let finished = FinishedWork::from_facts(facts);
    let mut out = goal_lines(facts, revoked, is_shown);
    out.extend(rule_lines(facts, revoked, is_shown));
    out.extend(state_lines(facts));
    out.extend(plan_lines(ledger));
    out.extend(failure_lines(facts));
    out.extend(open_lines(ledger, &finished));
    let done = finished.facts_to_show(facts).into_iter();
    out.extend(done.map(|f| new_fact_line(SectionTopic::Done, f.ordinal, &*f.text)));
    out.extend(made_lines(facts));
    out.extend(
        facts
            .decisions
            .iter()
            .rev()
            .map(|f| new_fact_line(SectionTopic::Decisions, f.ordinal, &*f.text)),
    );
    out.extend(facts.runs.iter().rev().map(step_line));
    for line in out.iter_mut().filter(|l| !l.topic.may_instruct()) {
        if let Cow::Owned(short) = root.shorten(&line.text) {
            line.text = short;
        }
    }
    out
}

/// The lines of the smallest summary: the rules, and where the work stands.
pub(super) fn least_lines(ledger: &Ledger) -> Vec<FactLine> {
    let facts = &ledger.facts;
    let mut lines = rule_lines(facts, &RevokedRules::from_facts(facts), &|_| false);
    lines.extend(state_lines(facts));
    lines
}

/// The rules that hold and what released them, the user's before the host's, those for the session before those for the
/// step at hand, those of the newest message first and each message's in their order.
fn rule_lines(
    facts: &Facts,
    revoked: &RevokedRules<'_>,
    is_shown: &dyn Fn(&str) -> bool,
) -> Vec<FactLine> {
    // A system's or developer's message stands whole in every view, and its rules are not the user's words.
    let live = facts
        .rules
        .iter()
        .filter(|f| f.voice != Voice::System && revoked.is_live(f));
    let releases = rule_releases(facts, revoked);
    let is_release = |rule: &Fact| releases.iter().any(|r| r.fact == rule);
    let rules = live.filter(|f| !is_release(f)).map(|f| (f, None));
    let releases = releases.iter().map(|r| (r.fact, Some(r.rule.ordinal)));
    let mut told: Vec<(&Fact, Option<u32>)> = rules.chain(releases).collect();
    told.sort_by_cached_key(|(f, about)| {
        let is_passing = rule_span(f, *about) == RuleSpan::Step;
        (f.voice != Voice::User, is_passing, Reverse(f.ordinal))
    });
    let mut seen = HashSet::new();
    told.retain(|(f, _)| seen.insert(f.text.to_lowercase()));
    let quotable = |f: &Fact| short_message(facts, revoked, f).filter(|m| !is_shown(m));
    let messages = told
        .iter()
        .filter_map(|(f, _)| Some((f.ordinal, quotable(f)?)));
    let messages: HashMap<u32, String> = messages.collect();
    let mut whole = HashSet::new();
    // A message that is quoted whole tells all its rules at once.
    let quoted = |(f, about): (&Fact, Option<u32>)| match messages.get(&f.ordinal) {
        Some(_) if !whole.insert(f.ordinal) => None,
        Some(message) => Some(FactLine {
            about,
            whole: true,
            span: rule_span(f, about),
            ..new_fact_line(SectionTopic::Rules, f.ordinal, format!("\"{message}\""))
        }),
        None => Some(FactLine {
            about,
            span: rule_span(f, about),
            ..new_fact_line(SectionTopic::Rules, f.ordinal, format!("\"{}\"", f.text))
        }),
    };
    told.into_iter().filter_map(quoted).collect()
}

static REQUEST_OPENER: PhraseList = PhraseList::at_start(cue_file!("request_opener"));

static FOR_NOW: PhraseList = PhraseList::anywhere(cue_file!("for_now"));

/// What the user says in passing ("it should be blue"), asks for once ("could you keep it in the repo") or for the time
/// being ("not yet") is a rule for what is being done; where its message is told, it stands there.
fn rule_span(rule: &Fact, about: Option<u32>) -> RuleSpan {
    let is_passing = || REQUEST_OPENER.is_in(&rule.text) || FOR_NOW.is_in(&rule.text);
    let stands = || is_standing_rule(&rule.text) && !is_passing();
    match about.is_some() || rule.voice != Voice::User || stands() {
        true => RuleSpan::Session,
        false => RuleSpan::Step,
    }
}

/// A message is quoted whole where a sentence of it rules while the rule is most of it, or it is a line or two, or it takes
/// something back: what it leaves stands beside what it ends.
const SHORT_MESSAGE: usize = 400;
const RULE_PART: usize = 2;
const TWO_LINES: usize = 120;

/// The message that a rule stands in, if that is short.
fn short_message(facts: &Facts, revoked: &RevokedRules<'_>, rule: &Fact) -> Option<String> {
    let at = facts.requests.partition_point(|f| f.ordinal < rule.ordinal);
    let message = facts
        .requests
        .get(at)
        .filter(|f| f.ordinal == rule.ordinal)?;
    let text = revoked.strip_revoked(message.ordinal, &message.text);
    let takes_back = |(sentence, _): (Cow<'_, str>, _)| {
        !rule.text.contains(&*sentence) && Withdrawal::of_sentence(&sentence) != Withdrawal::No
    };
    let most = match message.text.len() <= 2 * SHORT_MESSAGE
        && split_sentences(&message.text).any(takes_back)
    {
        true => SHORT_MESSAGE,
        false => (RULE_PART * rule.text.chars().count()).clamp(TWO_LINES, SHORT_MESSAGE),
    };
    // A message of many rules is asked about for each of them: whether it is too long is seen at its beginning.
    let shown = |c: &char| !c.is_whitespace() && !c.is_control();
    if text.chars().filter(shown).nth(most).is_some() {
        return None;
    }
    let text = clip(&text, usize::MAX - 1);
    let is_short = text.chars().count() <= most && text.contains(&*rule.text);
    (is_short && is_all_own(&message.text)).then_some(text)
}

/// Whether every word of a message is its writer's: none was pasted, quoted, repeated or asked about.
fn is_all_own(message: &str) -> bool {
    !message.contains(['?', '"', '“', '„', '«'])
        && split_sentences(message).all(|(sentence, _)| is_own_order(&sentence))
        && PastedParts::find(message).places.is_empty()
}

/// What was put off and not finished since. What the model merely has yet to do is stale when the user has spoken
/// again, or much was done since.
fn open_lines(ledger: &Ledger, finished: &FinishedWork<'_>) -> Vec<FactLine> {
    let facts = &ledger.facts;
    let recent = ledger.next.saturating_sub(ledger.next / 5) as u32;
    let asked = facts.requests.last().map_or(0, |request| request.ordinal);
    // What the model said before it committed, the commit settled.
    let committed = facts.runs.iter().rev().find(|run| is_commit(run));
    let committed = committed.map_or(0, |run| run.ordinal);
    let is_fresh = |f: &Fact| f.ordinal >= recent.max(asked).max(committed);
    let mut open: Vec<&Fact> = facts
        .open
        .iter()
        .rev()
        .filter(|f| (is_fresh(f) || is_postponement(&f.text)) && !finished.closes(f))
        .filter(|f| !is_announcement(&f.text))
        .filter(|f| f.voice == Voice::User || !is_completion(&f.text) && !is_progress(&f.text))
        .collect();
    open.sort_by_key(|f| f.voice != Voice::User);
    let told = open
        .iter()
        .map(|f| new_fact_line(SectionTopic::Open, f.ordinal, &*f.text));
    told.collect()
}

/// Whether the model only says what it is at: "I'm waiting for the tests".
fn is_progress(sentence: &str) -> bool {
    let mut words = sentence.split_whitespace();
    let is_speaker = |word: &str| matches!(word, "I'm" | "I’m" | "We're" | "We’re");
    words.next().is_some_and(is_speaker) && words.next().is_some_and(|word| word.ends_with("ing"))
}

/// Whether a run committed something.
fn is_commit(run: &ToolRun) -> bool {
    run.outcome == ToolRunOutcome::Ok && run.text.contains("git commit")
}

/// Things that tools made, those of the rarest tools first: what is made all the time is not asked
/// for by its id.
fn made_lines(facts: &Facts) -> Vec<FactLine> {
    let tool = |f: &Fact| f.text.split(':').next().unwrap_or("").to_owned();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for fact in &facts.made {
        *counts.entry(tool(fact)).or_default() += 1;
    }
    let mut made: Vec<&Fact> = facts.made.iter().rev().collect();
    made.sort_by_key(|f| counts.get(&tool(f)).copied());
    let told = made
        .iter()
        .map(|f| new_fact_line(SectionTopic::Made, f.ordinal, &*f.text));
    told.collect()
}

/// Characters of a request that are told.
const GOAL_CHARS: usize = 480;

/// The first request is the task, the last one what is asked now. What stands in the view is not quoted again.
fn goal_lines(
    facts: &Facts,
    revoked: &RevokedRules<'_>,
    is_shown: &dyn Fn(&str) -> bool,
) -> Vec<FactLine> {
    let goal = |f: &Fact| {
        let text = revoked.strip_revoked(f.ordinal, &f.text);
        let text = leave_out_pasted(&text).into_owned();
        let text = match text.chars().count() < GOAL_CHARS {
            true => text,
            false => strip_rules(facts, &text),
        };
        let text = clip(&text, GOAL_CHARS);
        (text.len() >= 12).then(|| FactLine {
            whole: text.chars().count() < GOAL_CHARS,
            ..new_fact_line(SectionTopic::Goals, f.ordinal, format!("\"{text}\""))
        })
    };
    let mut said = facts.requests.iter().filter(|f| f.voice == Voice::User);
    let first = said.next();
    let requests = first.into_iter().chain(said.next_back());
    let unseen = requests.filter(|request| !is_shown(&request.text));
    unseen.filter_map(goal).collect()
}

/// A message without its rules: where it is too long to be quoted whole, they have lines of their own.
pub(super) fn strip_rules(facts: &Facts, text: &str) -> String {
    let rules = facts.rules.iter();
    rules.fold(text.to_owned(), |text, rule| without(&text, &rule.text))
}

/// A plan that nobody touched for so many entries, or since the user spoke again, says how it stood then.
const PLAN_AGE: u64 = 40;
/// Behind so many requests and one more a plan is no longer what is being done.
const OTHER_REQUESTS: usize = 2;

/// The steps of the newest plan: what is being done, what is left, what is done.
fn plan_lines(ledger: &Ledger) -> Vec<FactLine> {
    let facts = &ledger.facts;
    let plan = facts.plan.ordinal;
    let asked = |nth: usize| facts.requests.iter().rev().nth(nth);
    let is_asked_since = |nth| asked(nth).is_some_and(|request| request.ordinal > plan);
    // What was asked for after a request about something else has a plan of its own, or none.
    if is_asked_since(OTHER_REQUESTS) {
        return Vec::new();
    }
    let is_old = is_asked_since(0) || ledger.next > u64::from(plan) + PLAN_AGE;
    let steps = facts.plan.steps.iter();
    let label = |step: &PlanStep| match (step.done, step.active) {
        (true, _) => "done",
        (false, true) if is_old => "in progress then",
        (false, true) => "in progress",
        (false, false) if is_old => "open then",
        (false, false) => "open",
    };
    let (done, left): (Vec<&PlanStep>, Vec<&PlanStep>) = steps.partition(|step| step.done);
    left.into_iter()
        .chain(done)
        .map(|step| format!("{}: {}", label(step), step.text))
        .map(|text| new_fact_line(SectionTopic::Plan, facts.plan.ordinal, text))
        .collect()
}

/// Whether a line says where the work stands: what is being done and left, and how it stands with the checks.
pub(super) fn is_state(line: &FactLine) -> bool {
    match line.topic {
        SectionTopic::State => true,
        SectionTopic::Plan => !line.text.starts_with("done: "),
        _ => false,
    }
}

/// Tasks, checks and characters of a command that the state tells.
const TASKS: usize = 4;
const CHECKS: usize = 3;
const STATE_COMMAND: usize = 100;

/// Where the work stands: how the newest checks ended, and what runs in the background. A check that is older than the last
/// change says nothing of it.
fn state_lines(facts: &Facts) -> Vec<FactLine> {
    let line = |ordinal, text| new_fact_line(SectionTopic::State, ordinal, text);
    let changed = facts.files.iter().filter(|file| file.is_changed());
    let changed = changed.map(|file| file.ordinal).max().unwrap_or(0);
    let tasks: Vec<&BackgroundTask> = facts
        .running_tasks()
        .filter(|task| !only_looks(facts, task))
        .collect();
    let running = tasks.iter().rev().take(TASKS).map(|task| {
        let command = clip(&task.text, STATE_COMMAND);
        let text = format!("in the background, no end seen: {command} ({})", task.id);
        line(task.ordinal, text)
    });
    let checks = state_checks(facts).into_iter().map(|run| {
        let command = clip(&run.text, STATE_COMMAND);
        let end = match &run.outcome {
            ToolRunOutcome::Failed(why) => format!("failed: {why}"),
            _ => run.end.as_deref().unwrap_or("ok").to_owned(),
        };
        let since = match changed > run.ordinal {
            true => format!(" (files changed since, #{changed})"),
            false => String::new(),
        };
        line(run.ordinal, format!("last run of {command} → {end}{since}"))
    });
    checks.chain(running).collect()
}

/// Messages whose place is told, and characters by which each is known.
const EARLY: usize = 3;
const EARLY_CHARS: usize = 48;

/// Where messages behind the summary belong in the story that it tells: read in their place, they would be the newest.
pub(super) fn order_line(facts: &Facts, early: &[u64]) -> Option<FactLine> {
    let last = *early.last()?;
    let skipped = early.len().saturating_sub(EARLY);
    let named = early.iter().skip(skipped).map(|ordinal| {
        let mut said = facts.requests.iter().chain(&facts.replies);
        let said = said.find(|fact| u64::from(fact.ordinal) == *ordinal);
        match said {
            Some(fact) => format!("#{ordinal} \"{}\"", clip(&fact.text, EARLY_CHARS)),
            None => format!("#{ordinal}"),
        }
    });
    let named: Vec<String> = named.collect();
    let text = format!(
        "below this summary stands {}: what has a higher number here came later",
        named.join(", ")
    );
    let ordinal = u32::try_from(last).unwrap_or(u32::MAX);
    Some(new_fact_line(SectionTopic::State, ordinal, text))
}

/// Whether a task only looks something up: that its end was not seen leaves nothing running.
fn only_looks(facts: &Facts, task: &BackgroundTask) -> bool {
    let at = facts.runs.partition_point(|run| run.ordinal < task.ordinal);
    let started = facts.runs.iter().skip(at);
    let mut started = started.take_while(|run| run.ordinal == task.ordinal);
    started.any(|run| run.text == task.text && run.only_looks())
}

/// The checks whose last run is told as the state of the work.
fn state_checks(facts: &Facts) -> Vec<&ToolRun> {
    facts.newest_checks().into_iter().take(CHECKS).collect()
}

static NO_FAILURE: PhraseList = PhraseList::anywhere(cue_file!("no_failure"));

/// A complaint so long is the same failure whatever command met it.
const TELLING: usize = 48;

/// Failures whose check has not passed since; those of the rarest commands first, then the newest.
pub(super) fn failure_lines(facts: &Facts) -> Vec<FactLine> {
    let mut told = HashSet::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut out = Vec::new();
    for FailedRun {
        run,
        why,
        closed_by,
    } in facts.failed_runs()
    {
        let passes = || is_reported_passing(facts, run.ordinal);
        // That nothing was found is an answer.
        let is_answer = run.only_looks() || NO_FAILURE.is_in(why);
        if closed_by.is_none()
            && !is_answer
            && !passes()
            && told.insert((why, command_if_needed(run, why)))
        {
            let kind = command_kind(&run.text);
            *counts.entry(kind).or_default() += 1;
            let text = failure_text(facts, run, why);
            out.push((
                kind,
                new_fact_line(SectionTopic::Failures, run.ordinal, text),
            ));
        }
    }
    out.sort_by_key(|(kind, _)| counts.get(kind).copied());
    out.into_iter().map(|(_, line)| line).collect()
}

/// Whether the model says later that checks pass.
fn is_reported_passing(facts: &Facts, ordinal: u32) -> bool {
    let later = facts.replies.iter().rev();
    let mut later = later.take_while(|reply| reply.ordinal > ordinal);
    later.any(|reply| reports_passing(&reply.text))
}

/// The command, where the complaint alone does not tell the failure.
fn command_if_needed<'r>(run: &'r ToolRun, why: &str) -> Option<&'r str> {
    (why.len() < TELLING).then_some(&*run.text)
}

/// The tool and the first word of its command.
fn command_kind(run: &str) -> &str {
    let end = run.match_indices(' ').nth(1).map_or(run.len(), |(i, _)| i);
    run.get(..end).unwrap_or(run)
}

fn failure_text(facts: &Facts, run: &ToolRun, why: &str) -> String {
    let command = clip(&run.text, 120);
    match remedy(facts, run) {
        Some(remedy) => format!("{command} → {why}; the agent then: {}", clip(remedy, 200)),
        None => format!("{command} → {why}"),
    }
}

/// How soon after a failed call the model says what it was: the answer, and a look or two.
const SOON: u32 = 5;

/// The first finding or success that the model tells soon after a failure.
fn remedy<'l>(facts: &'l Facts, run: &ToolRun) -> Option<&'l str> {
    let after = |list: &'l [Fact]| {
        let at = list.partition_point(|f| f.ordinal <= run.ordinal);
        let next = list.iter().skip(at).find(|f| f.voice == Voice::Model)?;
        (next.ordinal <= run.ordinal + SOON).then_some(next)
    };
    let found = [after(&facts.decisions), after(&facts.done)];
    let first = found.into_iter().flatten().min_by_key(|f| f.ordinal)?;
    Some(&first.text)
}

/// The files that were changed, the newest first.
pub(super) fn file_lines(ledger: &Ledger, root: &RootDirectory<'_>) -> Vec<FactLine> {
    let changed = ledger.facts.files.iter().rev();
    let changed = changed.filter(|file| file.is_changed());
    let told = changed.map(|file| FactLine {
        text: root.shorten(&file_line(file).text).into_owned(),
        ..file_line(file)
    });
    told.collect()
}

/// Characters of a command that is told as done.
const DONE_COMMAND: usize = 160;

/// The commands that went through, the newest first.
pub(super) fn executed_lines(ledger: &Ledger, root: &RootDirectory<'_>) -> Vec<FactLine> {
    let executed = ledger.facts.executed_commands().into_iter();
    let told = executed.map(|run| {
        let command = clip(&root.shorten(&run.text), DONE_COMMAND);
        let end = run.end.as_deref().unwrap_or("ok");
        new_fact_line(
            SectionTopic::Done,
            run.ordinal,
            format!("ran {command} → {end}"),
        )
    });
    told.collect()
}

fn file_line(file: &FileFact) -> FactLine {
    let act = match file.act {
        FileAct::Read => "read",
        FileAct::Edited => "edited",
        FileAct::Created => "created",
        FileAct::Deleted => "deleted",
        FileAct::Restored => "put back as it was",
    };
    let times = if file.edits > 1 {
        format!(" ×{}", file.edits)
    } else {
        String::new()
    };
    let symbols = match file.symbols.is_empty() {
        true => String::new(),
        false => format!(": {}", file.symbols.join(", ")),
    };
    new_fact_line(
        SectionTopic::Files,
        file.ordinal,
        format!("{} {act}{times}{symbols}", file.path),
    )
}

/// That the user refused a call, with the reason if there is one.
pub(super) fn refusal_text(why: &str) -> String {
    match why.is_empty() {
        true => "refused by the user".to_owned(),
        false => format!("refused by the user: {why}"),
    }
}

fn step_line(run: &ToolRun) -> FactLine {
    let end = match &run.outcome {
        ToolRunOutcome::Pending => "no answer yet".to_owned(),
        ToolRunOutcome::Ok => "ok".to_owned(),
        ToolRunOutcome::Failed(why) => format!("failed: {why}"),
        ToolRunOutcome::Refused(why) => refusal_text(why),
    };
    new_fact_line(
        SectionTopic::Steps,
        run.ordinal,
        format!("{} → {end}", run.text),
    )
}
