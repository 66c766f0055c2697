//! `inspect`: what a session is made of and how full the window is. Writes nothing.

use compact::format::{TranscriptProblem, TranscriptScope};
use compact::message::{Block, Conversation, Entry, EntryHash, Outline, Role, UnitHealth};
use compact::policy::{self, TriggerDecision};
use compact::token::{EstimatorExt, TokenAccount, TokenCache, Tokens};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::CommandAnswer;
use crate::app::{App, OpenedTranscript};
use crate::args::{GlobalArgs, InspectArgs};
use crate::failure::Failure;
use crate::progress::TerminalProgress;
use crate::report::bar::bar;
use crate::report::number::{format_count, format_percent, group_digits};
use crate::report::table::{Column, Table};
use crate::report::text::{fit, one_line};
use crate::report::{COLUMNS, Charset};

/// How many of the biggest entries are named.
const BIGGEST: usize = 5;
/// How many problems are told to a person; `--json` has all.
const PROBLEMS: usize = 8;

/// Everything that is said about a session.
struct SessionInspection<'a> {
    opened: &'a OpenedTranscript,
    session_id: Option<String>,
    outline: Outline,
    account: TokenAccount,
    transcript: Tokens,
    decision: TriggerDecision,
    problems: Vec<TranscriptProblem>,
}

/// Counts a session.
pub(super) fn run(
    args: &InspectArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let opened = app.open_transcript(&args.subject)?;
    let size = opened.source.bytes.len();
    let _progress = TerminalProgress::over_bytes(global, size, "counting");
    let findings = SessionInspection::from_opened(&opened, app, global, args.subject.whole)?;
    let human = findings.render_report(Charset::detect(global));
    Ok(CommandAnswer::new(findings.to_json(), human))
}

impl<'a> SessionInspection<'a> {
    fn from_opened(
        opened: &'a OpenedTranscript,
        app: &App,
        global: &GlobalArgs,
        whole: bool,
    ) -> Result<SessionInspection<'a>, Failure> {
        let mut cache = TokenCache::default();
        let conversation = &opened.parsed.conversation;
        let account = count_conversation(conversation, opened, &mut cache);
        let transcript = if whole {
            account.total()
        } else {
            let all = opened.source.parse(
                Some(opened.parsed.document.format()),
                TranscriptScope::Whole,
            )?;
            count_conversation(&all.conversation, opened, &mut cache).total()
        };
        let outline = Outline::from_conversation(conversation);
        let named = global.session.clone();
        Ok(SessionInspection {
            session_id: named.or_else(|| conversation.session_id.clone()),
            problems: find_problems(opened, &outline),
            decision: policy::decide(account.total(), opened.window.tokens, app.base_policy()),
            opened,
            outline,
            account,
            transcript,
        })
    }

    fn to_json(&self) -> Value {
        let conversation = &self.opened.parsed.conversation;
        json!({
            "format": self.opened.parsed.document.format().name(),
            "session_id": self.session_id,
            "model": self.opened.model,
            "estimator": self.opened.estimator.name(),
            "entries": conversation.entries.len(),
            "turns": self.outline.turns(),
            "exchanges": self.outline.exchanges(),
            "tokens": {
                "total": self.account.total(),
                "transcript": self.transcript,
                "system": self.account.system,
                "tools": self.account.tools,
                "history": self.account.history,
                "tool_results": self.account.tool_results,
                "summaries": self.account.memory,
                "by_role": self.role_tokens_json(),
            },
            "window": self.opened.window.tokens,
            "window_source": self.opened.window.source.to_string(),
            "pressure": self.decision.pressure,
            "verdict": self.decision.verdict,
            "reason": self.decision.reason,
            "biggest": self.biggest_entries().map(|(i, tokens)| self.big_entry_json(i, tokens)).collect::<Vec<_>>(),
            "problems": self.problems.iter().map(problem_json).collect::<Vec<_>>(),
        })
    }

    fn role_tokens_json(&self) -> Value {
        let roles = self.account.by_role.iter();
        roles
            .map(|(role, tokens)| (role.as_str().to_owned(), json!(tokens)))
            .collect()
    }

    /// The largest entries with their tokens, the largest first.
    fn biggest_entries(&self) -> impl Iterator<Item = (usize, Tokens)> {
        let mut entries: Vec<_> = self.account.entries.iter().copied().enumerate().collect();
        entries.sort_by_key(|(i, units)| (std::cmp::Reverse(*units), *i));
        entries
            .into_iter()
            .take(BIGGEST)
            .map(|(i, units)| (i, self.opened.estimator.to_tokens(units)))
    }

    fn entry_at(&self, index: usize) -> Option<&Entry> {
        self.opened.parsed.conversation.entries.get(index)
    }

    fn big_entry_json(&self, index: usize, tokens: Tokens) -> Value {
        let entry = self.entry_at(index);
        json!({
            "entry": index,
            "id": entry.map(|e| &e.id),
            "role": entry.map(|e| e.role),
            "tokens": tokens,
        })
    }

    fn render_report(&self, charset: Charset) -> String {
        let mut out = self.render_head(charset);
        out.push_str(&self.render_pressure(charset));
        out.push_str(&self.render_categories(charset));
        out.push_str(&self.render_biggest());
        out.push_str(&self.render_problems());
        out
    }

    fn render_head(&self, charset: Charset) -> String {
        let conversation = &self.opened.parsed.conversation;
        let mut facts = vec![self.opened.parsed.document.format().name().to_owned()];
        facts.extend(self.opened.model.as_deref().map(|m| one_line(m, 40)));
        facts.push(format_count(
            conversation.entries.len() as u64,
            "entry",
            "entries",
        ));
        facts.push(format_count(self.outline.turns() as u64, "turn", "turns"));
        facts.push(format_count(
            self.outline.exchanges() as u64,
            "exchange",
            "exchanges",
        ));
        let session = self.session_id.as_deref().map_or_else(String::new, |id| {
            format!(
                "  {}\n",
                one_line(&format!("session {id}"), COLUMNS - 2).dimmed()
            )
        });
        format!(
            "{}\n  {}\n{session}\n",
            fit(&self.opened.source.name, COLUMNS).bold(),
            facts.join(charset.separator()),
        )
    }

    fn render_pressure(&self, charset: Charset) -> String {
        let decision = &self.decision;
        let style = match decision.pressure {
            p if p > 0.85 => Style::new().red(),
            p if p > 0.6 => Style::new().yellow(),
            _ => Style::new().green(),
        };
        format!(
            "  {}  {}\n  {} of {} tokens ({}, counted with {})\n  {}\n\n",
            bar(decision.pressure, 50, charset).style(style),
            format_percent(decision.pressure).style(style.bold()),
            group_digits(decision.tokens.0),
            group_digits(decision.window.0),
            self.opened.window.source,
            self.opened.estimator.name(),
            render_verdict(decision),
        )
    }

    fn render_categories(&self, charset: Charset) -> String {
        let total = self.account.total().0.max(1) as f64;
        let dim = Style::new().dimmed();
        let mut table = Table::new([
            Column::left(),
            Column::right(),
            Column::right(),
            Column::left().style(dim),
        ]);
        let mut row = |name: &str, tokens: Tokens| {
            let share = tokens.0 as f64 / total;
            table.add_row([
                name.to_owned(),
                group_digits(tokens.0),
                format_percent(share),
                bar(share, 24, charset),
            ]);
        };
        row("system", self.account.system);
        row("tools", self.account.tools);
        row("history", self.account.history);
        row("  tool results", self.account.tool_results);
        row("  summaries", self.account.memory);
        for role in [Role::User, Role::Assistant, Role::Tool] {
            let tokens = self.account.by_role.get(&role).copied();
            row(&format!("  role {role}"), tokens.unwrap_or_default());
        }
        let mut out = table.render();
        if self.transcript != self.account.total() {
            out.push_str(&format!(
                "  the whole transcript has {}, the rest was compacted before\n",
                format_count(self.transcript.0, "token", "tokens")
            ));
        }
        out
    }

    fn render_biggest(&self) -> String {
        let mut table = Table::new([
            Column::right().style(Style::new().dimmed()),
            Column::left(),
            Column::right(),
            Column::left().style(Style::new().dimmed()),
        ]);
        for (index, tokens) in self.biggest_entries() {
            if let Some(entry) = self.entry_at(index) {
                table.add_row([
                    format!("#{index}"),
                    entry.role.to_string(),
                    group_digits(tokens.0),
                    one_line(first_words(entry), 48),
                ]);
            }
        }
        format!("\n  {}\n{}", "biggest entries".bold(), table.render())
    }

    fn render_problems(&self) -> String {
        if self.problems.is_empty() {
            return format!("\n  {}\n", "no problems found".green());
        }
        let found = format_count(self.problems.len() as u64, "problem", "problems");
        let mut out = format!("\n  {}\n", found.yellow().bold());
        for problem in self.problems.iter().take(PROBLEMS) {
            out.push_str(&format!(
                "  {}\n",
                one_line(&problem_words(problem), COLUMNS - 2)
            ));
        }
        if self.problems.len() > PROBLEMS {
            out.push_str(&format!(
                "  ... and {} more\n",
                self.problems.len() - PROBLEMS
            ));
        }
        out
    }
}

fn count_conversation(
    conversation: &Conversation,
    opened: &OpenedTranscript,
    cache: &mut TokenCache,
) -> TokenAccount {
    let hashes = EntryHash::from_entries(&conversation.entries);
    TokenAccount::count_conversation(conversation, &hashes, &*opened.estimator, cache)
}

/// What the reader noticed, and exchanges beyond that that no provider would accept.
fn find_problems(opened: &OpenedTranscript, outline: &Outline) -> Vec<TranscriptProblem> {
    let mut problems = opened.parsed.problems.clone();
    for unit in outline
        .units
        .iter()
        .filter(|u| u.health == UnitHealth::Broken)
    {
        let known =
            |p: &TranscriptProblem| p.entry.is_some_and(|entry| unit.entries.contains(&entry));
        if !problems.iter().any(known) {
            problems.push(TranscriptProblem {
                entry: Some(unit.entries.start),
                line: None,
                message: "a tool call without result, or a result without call".to_owned(),
            });
        }
    }
    problems
}

fn problem_json(problem: &TranscriptProblem) -> Value {
    json!({ "entry": problem.entry, "line": problem.line, "message": problem.message })
}

fn problem_words(problem: &TranscriptProblem) -> String {
    match (problem.line, problem.entry) {
        (Some(line), _) => format!("line {line}: {}", problem.message),
        (None, Some(entry)) => format!("entry #{entry}: {}", problem.message),
        (None, None) => problem.message.clone(),
    }
}

fn render_verdict(decision: &TriggerDecision) -> String {
    let name = json!(decision.verdict);
    let name = name.as_str().unwrap_or_default().replace('_', " ");
    format!("{}: {}", name.bold(), decision.reason)
}

/// The first words of an entry, or what stands in their place.
fn first_words(entry: &Entry) -> &str {
    let texts = entry.blocks.iter().flat_map(Block::text_parts);
    let mut texts = texts.filter(|text| !text.trim().is_empty());
    texts.next().unwrap_or(match entry.blocks.first() {
        Some(Block::Media { label, .. }) => label,
        Some(Block::Reasoning { .. }) => "(reasoning)",
        _ => "",
    })
}
