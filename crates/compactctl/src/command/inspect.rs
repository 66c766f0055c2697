//! `inspect`: what a session is made of and how full the window is. Writes nothing.

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry, Role};
use compact_core::outline::{Health, Outline};
use compact_core::token::{Account, EstimatorExt, TokenCache, Tokens};
use compact_core::trigger::{self, Decision};
use compact_formats::{Problem, Scope};
use owo_colors::{OwoColorize, Style};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::args::{Global, Inspect};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::bar::bar;
use crate::report::number::{count, grouped, percent};
use crate::report::table::{Column, Table};
use crate::report::text::{fit, one_line};
use crate::report::{COLUMNS, Charset};
use crate::world::{Opened, World};

/// How many of the biggest entries are named.
const BIGGEST: usize = 5;
/// How many problems are told to a person; `--json` has all.
const PROBLEMS: usize = 8;

/// Everything that is said about a session.
struct Findings<'a> {
    opened: &'a Opened,
    session_id: Option<String>,
    outline: Outline,
    account: Account,
    transcript: Tokens,
    decision: Decision,
    problems: Vec<Problem>,
}

/// Counts a session.
pub fn run(args: &Inspect, world: &World, global: &Global) -> Result<Answer, Failure> {
    let opened = world.open(&args.subject)?;
    let size = opened.source.bytes.len();
    let _progress = Progress::over_bytes(global, size, "counting");
    let findings = Findings::of(&opened, world, global, args.subject.whole)?;
    let human = findings.tell(Charset::detect(global));
    Ok(Answer::new(findings.to_json(), human))
}

impl<'a> Findings<'a> {
    fn of(
        opened: &'a Opened,
        world: &World,
        global: &Global,
        whole: bool,
    ) -> Result<Findings<'a>, Failure> {
        let mut cache = TokenCache::default();
        let conversation = &opened.parsed.conversation;
        let account = measure(conversation, opened, &mut cache);
        let transcript = if whole {
            account.total()
        } else {
            let all = opened
                .source
                .parse(Some(opened.parsed.document.format()), Scope::Whole)?;
            measure(&all.conversation, opened, &mut cache).total()
        };
        let outline = Outline::of(conversation);
        let named = global.session.clone();
        Ok(Findings {
            session_id: named.or_else(|| conversation.session_id.clone()),
            problems: problems(opened, &outline),
            decision: trigger::decide(account.total(), opened.window.tokens, world.base_policy()),
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
                "by_role": self.by_role(),
            },
            "window": self.opened.window.tokens,
            "window_source": self.opened.window.source.to_string(),
            "pressure": self.decision.pressure,
            "verdict": self.decision.verdict,
            "reason": self.decision.reason,
            "biggest": self.biggest().map(|(i, tokens)| self.big_json(i, tokens)).collect::<Vec<_>>(),
            "problems": self.problems.iter().map(problem_json).collect::<Vec<_>>(),
        })
    }

    fn by_role(&self) -> Value {
        let roles = self.account.by_role.iter();
        roles
            .map(|(role, tokens)| (role.as_str().to_owned(), json!(tokens)))
            .collect()
    }

    /// The largest entries with their tokens, the largest first.
    fn biggest(&self) -> impl Iterator<Item = (usize, Tokens)> {
        let mut entries: Vec<_> = self.account.entries.iter().copied().enumerate().collect();
        entries.sort_by_key(|(i, units)| (std::cmp::Reverse(*units), *i));
        entries
            .into_iter()
            .take(BIGGEST)
            .map(|(i, units)| (i, self.opened.estimator.tokens(units)))
    }

    fn entry(&self, index: usize) -> Option<&Entry> {
        self.opened.parsed.conversation.entries.get(index)
    }

    fn big_json(&self, index: usize, tokens: Tokens) -> Value {
        let entry = self.entry(index);
        json!({
            "entry": index,
            "id": entry.map(|e| &e.id),
            "role": entry.map(|e| e.role),
            "tokens": tokens,
        })
    }

    fn tell(&self, charset: Charset) -> String {
        let mut out = self.head(charset);
        out.push_str(&self.pressure(charset));
        out.push_str(&self.categories(charset));
        out.push_str(&self.big_entries());
        out.push_str(&self.health());
        out
    }

    fn head(&self, charset: Charset) -> String {
        let conversation = &self.opened.parsed.conversation;
        let mut facts = vec![self.opened.parsed.document.format().name().to_owned()];
        facts.extend(self.opened.model.as_deref().map(|m| one_line(m, 40)));
        facts.push(count(conversation.entries.len() as u64, "entry", "entries"));
        facts.push(count(self.outline.turns() as u64, "turn", "turns"));
        facts.push(count(
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
            facts.join(charset.dot()),
        )
    }

    fn pressure(&self, charset: Charset) -> String {
        let decision = &self.decision;
        let style = match decision.pressure {
            p if p > 0.85 => Style::new().red(),
            p if p > 0.6 => Style::new().yellow(),
            _ => Style::new().green(),
        };
        format!(
            "  {}  {}\n  {} of {} tokens ({}, counted with {})\n  {}\n\n",
            bar(decision.pressure, 50, charset).style(style),
            percent(decision.pressure).style(style.bold()),
            grouped(decision.tokens.0),
            grouped(decision.window.0),
            self.opened.window.source,
            self.opened.estimator.name(),
            verdict(decision),
        )
    }

    fn categories(&self, charset: Charset) -> String {
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
            table.row([
                name.to_owned(),
                grouped(tokens.0),
                percent(share),
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
                count(self.transcript.0, "token", "tokens")
            ));
        }
        out
    }

    fn big_entries(&self) -> String {
        let mut table = Table::new([
            Column::right().style(Style::new().dimmed()),
            Column::left(),
            Column::right(),
            Column::left().style(Style::new().dimmed()),
        ]);
        for (index, tokens) in self.biggest() {
            if let Some(entry) = self.entry(index) {
                table.row([
                    format!("#{index}"),
                    entry.role.to_string(),
                    grouped(tokens.0),
                    one_line(said(entry), 48),
                ]);
            }
        }
        format!("\n  {}\n{}", "biggest entries".bold(), table.render())
    }

    fn health(&self) -> String {
        if self.problems.is_empty() {
            return format!("\n  {}\n", "no problems found".green());
        }
        let found = count(self.problems.len() as u64, "problem", "problems");
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

fn measure(conversation: &Conversation, opened: &Opened, cache: &mut TokenCache) -> Account {
    let hashes = EntryHash::all(&conversation.entries);
    Account::of(conversation, &hashes, &*opened.estimator, cache)
}

/// What the reader noticed, and exchanges beyond that that no provider would accept.
fn problems(opened: &Opened, outline: &Outline) -> Vec<Problem> {
    let mut problems = opened.parsed.problems.clone();
    for unit in outline.units.iter().filter(|u| u.health == Health::Broken) {
        let known = |p: &Problem| p.entry.is_some_and(|entry| unit.entries.contains(&entry));
        if !problems.iter().any(known) {
            problems.push(Problem {
                entry: Some(unit.entries.start),
                line: None,
                message: "a tool call without result, or a result without call".to_owned(),
            });
        }
    }
    problems
}

fn problem_json(problem: &Problem) -> Value {
    json!({ "entry": problem.entry, "line": problem.line, "message": problem.message })
}

fn problem_words(problem: &Problem) -> String {
    match (problem.line, problem.entry) {
        (Some(line), _) => format!("line {line}: {}", problem.message),
        (None, Some(entry)) => format!("entry #{entry}: {}", problem.message),
        (None, None) => problem.message.clone(),
    }
}

fn verdict(decision: &Decision) -> String {
    let name = json!(decision.verdict);
    let name = name.as_str().unwrap_or_default().replace('_', " ");
    format!("{}: {}", name.bold(), decision.reason)
}

/// The first words of an entry, or what stands in their place.
fn said(entry: &Entry) -> &str {
    let texts = entry.blocks.iter().flat_map(Block::text_parts);
    let mut texts = texts.filter(|text| !text.trim().is_empty());
    texts.next().unwrap_or(match entry.blocks.first() {
        Some(Block::Media { label, .. }) => label,
        Some(Block::Reasoning { .. }) => "(reasoning)",
        _ => "",
    })
}
