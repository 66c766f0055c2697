//! What was spent: the journal's requests, compactions and misses as sums of a project and a week, and as prices of what
//! comes next.
//!
//! A compaction is judged by the requests that followed it: each read a view instead of the history, and the first of them
//! had to write the view to the cache. Where fewer followed than that takes, it lost money, and that is told as a loss. What
//! somebody asked for beside a session that goes on is no view of it before a request is shorter than the one before.

use std::collections::{BTreeMap, HashMap};

use compact_adapters::journal::{JournalEntry, JournalFact, week_of};
use compact_core::event::CacheMiss;
use compact_core::token::Tokens;
use compact_core::trigger::CompactionCause;
use compact_core::trigger::economy::{CacheMultiples, CacheWarmth, EconomyNumbers};
use compact_core::usage::Usage;
use compact_core::window::{ModelPrice, find_model};
use jiff::{SignedDuration, Timestamp};

use crate::compact::Compact;
use crate::session_list::CountedRequest;

/// Which part of the journal is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendingQuery<'a> {
    /// Only sessions whose name begins so: those of one tenant.
    pub prefix: &'a str,
    /// Only this session.
    pub session: Option<&'a str>,
    /// How far back.
    pub weeks: u32,
}

/// What was spent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpendingReport {
    /// The last hour.
    pub hour: SpendingSum,
    /// All that was asked for.
    pub all: SpendingSum,
    /// Every request, the oldest first, where one session was asked for.
    pub requests: Vec<CountedRequest>,
    /// Each project and week, the newest week first, and in it what cost most.
    pub weeks: Vec<ProjectWeek>,
    /// Sessions that somebody may go on with, by what that costs once their caches are cold.
    pub resumes: Vec<ColdResume>,
    /// What caches missed, the newest first.
    pub misses: Vec<CacheLoss>,
    /// What compactions cost and saved, by receipt.
    pub compactions: HashMap<String, CompactionCost>,
}

/// Sums over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpendingSum {
    /// Requests.
    pub requests: u64,
    /// Their tokens.
    pub usage: Usage,
    /// US dollars by list price.
    pub cost_usd: f64,
    /// Requests to models whose prices are not known.
    pub unpriced: u64,
    /// What compactions saved that paid.
    pub saved_usd: f64,
    /// What compactions cost that have not paid so far.
    pub lost_usd: f64,
    /// What was paid more because a cache had not kept a prompt.
    pub missed_usd: f64,
}

/// What a project cost in a week.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectWeek {
    /// The folder; none where nobody said it.
    pub project: Option<String>,
    /// The week, as ISO 8601 names it.
    pub week: String,
    /// The sums.
    pub sum: SpendingSum,
}

/// What it costs to go on with a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdResume {
    /// The session.
    pub session: String,
    /// The model of its last request.
    pub model: String,
    /// When that was.
    pub last_at: Timestamp,
    /// Tokens that the next request repeats.
    pub tokens: Tokens,
    /// Seconds until the cache is cold; zero once it is.
    pub seconds_left: i64,
    /// US dollars while the cache has them.
    pub warm_usd: f64,
    /// US dollars once it has not.
    pub cold_usd: f64,
}

/// Something that a cache missed.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheLoss {
    /// The session.
    pub session: String,
    /// When.
    pub at: Timestamp,
    /// What, and why.
    pub miss: CacheMiss,
}

/// What came of a compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionCost {
    /// Why it was made.
    pub cause: Option<CompactionCause>,
    /// The cache when it was made; unknown where no request was reported before.
    pub warmth: Option<CacheWarmth>,
    /// Requests that followed, up to the next compaction.
    pub requests: u64,
    /// How many had to follow for it to pay.
    pub break_even: f64,
    /// US dollars to write the view to the cache, more than reading on would have cost; less than zero where that was
    /// cheaper at once. Unknown where the model's prices are.
    pub cost_usd: Option<f64>,
    /// US dollars saved so far; less than zero, lost.
    pub saved_usd: Option<f64>,
}

impl Compact {
    /// Returns what requests of the last weeks cost, what compactions did about it, and what the next ones will cost.
    ///
    /// ```
    /// # fn main() -> Result<(), compact::Error> {
    /// use compact::spending::SpendingQuery;
    ///
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// let report = compact.spending(&SpendingQuery::default());
    /// assert_eq!(report.hour.requests, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spending(&self, query: &SpendingQuery<'_>) -> SpendingReport {
        let Some(journal) = self.journal() else {
            return SpendingReport::default();
        };
        let now = self.clock().now();
        let hours = i64::from(query.weeks).saturating_mul(7 * 24);
        let since = now
            .checked_sub(SignedDuration::from_hours(hours))
            .unwrap_or(Timestamp::UNIX_EPOCH);
        let name = query.session.map(serde_json::Value::from);
        let name = name.map(|name| name.to_string());
        let is_wanted = |line: &str| name.as_ref().is_none_or(|name| line.contains(name));
        let mut entries = journal.read_since(since, is_wanted);
        entries.retain(|entry| {
            entry.session.starts_with(query.prefix)
                && query.session.is_none_or(|name| name == entry.session)
        });
        let cache_seconds = self.config().policy.economy.cache_seconds();
        let cache_seconds = i64::try_from(cache_seconds).unwrap_or(i64::MAX);
        let mut report = build_report(&entries, now, cache_seconds);
        if query.session.is_some() {
            let requests = entries.iter().filter_map(CountedRequest::from_journal);
            report.requests = requests.collect();
        }
        report
    }
}

impl Default for SpendingQuery<'_> {
    fn default() -> Self {
        SpendingQuery {
            prefix: "",
            session: None,
            weeks: 8,
        }
    }
}

impl SpendingSum {
    fn add_request(&mut self, usage: &Usage, cost_usd: Option<f64>) {
        self.requests += 1;
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.cache_read_tokens += usage.cache_read_tokens;
        self.usage.cache_creation_tokens += usage.cache_creation_tokens;
        match cost_usd {
            Some(cost) => self.cost_usd += cost,
            None => self.unpriced += 1,
        }
    }

    fn add_balance(&mut self, saved_usd: f64) {
        match saved_usd >= 0.0 {
            true => self.saved_usd += saved_usd,
            false => self.lost_usd -= saved_usd,
        }
    }
}

/// What is known of a session while the journal is read.
#[derive(Default)]
struct SessionNotes {
    project: Option<String>,
    last: Option<LastRequest>,
    /// Whether anything was ever read from a cache.
    uses_cache: bool,
    /// The one whose view its requests show.
    compaction: Option<OpenCompaction>,
    /// Those whose views no request has shown so far, the newest last.
    unsent: Vec<OpenCompaction>,
}

struct LastRequest {
    at: Timestamp,
    usage: Usage,
    model: Option<String>,
}

/// A compaction whose requests are still counted.
struct OpenCompaction {
    receipt: String,
    at: Timestamp,
    cause: Option<CompactionCause>,
    tokens: (Tokens, Tokens),
    warmth: Option<CacheWarmth>,
    price: Option<ModelPrice>,
    requests: u64,
}

fn build_report(entries: &[JournalEntry], now: Timestamp, cache_seconds: i64) -> SpendingReport {
    let mut builder = ReportBuilder {
        cache_seconds,
        hour_ago: now - SignedDuration::from_hours(1),
        sessions: HashMap::new(),
        weeks: BTreeMap::new(),
        report: SpendingReport::default(),
    };
    for entry in entries {
        builder.add(entry);
    }
    builder.finish(now)
}

struct ReportBuilder {
    cache_seconds: i64,
    hour_ago: Timestamp,
    sessions: HashMap<String, SessionNotes>,
    weeks: BTreeMap<(String, Option<String>), SpendingSum>,
    report: SpendingReport,
}

impl ReportBuilder {
    fn add(&mut self, entry: &JournalEntry) {
        let notes = self.sessions.entry(entry.session.clone()).or_default();
        if let JournalFact::Project(folder) = &entry.fact {
            notes.project = Some(folder.clone());
            return;
        }
        // What an agent says itself counts more than where a gateway was started.
        if notes.project.is_none() {
            notes.project.clone_from(&entry.project);
        }
        match &entry.fact {
            JournalFact::Request { usage, cost_usd } => self.add_request(entry, usage, *cost_usd),
            JournalFact::Compaction {
                receipt,
                cause,
                tokens,
            } => self.add_compaction(entry, receipt, *cause, *tokens),
            JournalFact::Miss(miss) => self.add_miss(entry, *miss),
            JournalFact::Project(_) => {}
        }
    }

    fn add_request(&mut self, entry: &JournalEntry, usage: &Usage, cost_usd: Option<f64>) {
        self.count(&entry.session, entry.at, |sum| {
            sum.add_request(usage, cost_usd);
        });
        self.find_sent(&entry.session, usage);
        let notes = self.sessions.entry(entry.session.clone()).or_default();
        notes.uses_cache |= usage.cache_read_tokens + usage.cache_creation_tokens > 0;
        if let Some(open) = &mut notes.compaction {
            open.requests += 1;
            open.price = open.price.or_else(|| price_of(entry.model.as_deref()));
        }
        notes.last = Some(LastRequest {
            at: entry.at,
            usage: *usage,
            model: entry.model.clone(),
        });
    }

    fn add_compaction(
        &mut self,
        entry: &JournalEntry,
        receipt: &str,
        cause: Option<CompactionCause>,
        tokens: (Tokens, Tokens),
    ) {
        let cache_seconds = self.cache_seconds;
        let notes = self.sessions.entry(entry.session.clone()).or_default();
        // A driver sends what it compacts; what a person asks for may be nobody's yet.
        let is_sent = cause != Some(CompactionCause::Asked) || notes.last.is_none();
        let warmth = notes.last.as_ref().map(|last| {
            let idle = entry.at.duration_since(last.at).as_secs();
            match (notes.uses_cache, idle > cache_seconds) {
                (false, _) => CacheWarmth::Unused,
                (true, true) => CacheWarmth::Cold,
                (true, false) => CacheWarmth::Warm,
            }
        });
        notes.unsent.push(OpenCompaction {
            receipt: receipt.to_owned(),
            at: entry.at,
            cause,
            tokens,
            warmth,
            price: price_of(entry.model.as_deref()),
            requests: 0,
        });
        if is_sent {
            self.show_newest(&entry.session);
        }
    }

    /// Finds out from a request whether the newest view is sent: it made the prompt shorter than the one before.
    fn find_sent(&mut self, session: &str, usage: &Usage) {
        let notes = self.sessions.entry(session.to_owned()).or_default();
        let last = notes.last.as_ref().map(|last| last.usage.prompt_tokens());
        let is_shorter = last.is_none_or(|last| usage.prompt_tokens() < last);
        if is_shorter && !notes.unsent.is_empty() {
            self.show_newest(session);
        }
    }

    /// Counts what follows for the newest view; the one before it has had its requests, and others were never sent.
    fn show_newest(&mut self, session: &str) {
        self.close_compaction(session);
        let notes = self.sessions.entry(session.to_owned()).or_default();
        notes.compaction = notes.unsent.pop();
        self.close_unsent(session);
    }

    fn close_unsent(&mut self, session: &str) {
        let notes = self.sessions.get_mut(session);
        let unsent = notes.map(|notes| std::mem::take(&mut notes.unsent));
        for open in unsent.into_iter().flatten() {
            let cost = open.weigh();
            self.report.compactions.insert(open.receipt, cost);
        }
    }

    fn add_miss(&mut self, entry: &JournalEntry, miss: CacheMiss) {
        let extra = miss.extra_usd.unwrap_or(0.0);
        self.count(&entry.session, entry.at, |sum| sum.missed_usd += extra);
        self.report.misses.push(CacheLoss {
            session: entry.session.clone(),
            at: entry.at,
            miss,
        });
    }

    /// Judges a compaction once all of its requests are known.
    fn close_compaction(&mut self, session: &str) {
        let notes = self.sessions.get_mut(session);
        let Some(open) = notes.and_then(|notes| notes.compaction.take()) else {
            return;
        };
        let cost = open.weigh();
        if let Some(saved) = cost.saved_usd {
            self.count(session, open.at, |sum| sum.add_balance(saved));
        }
        self.report.compactions.insert(open.receipt, cost);
    }

    /// Adds to every sum that a session's moment is part of.
    fn count(&mut self, session: &str, at: Timestamp, add: impl Fn(&mut SpendingSum)) {
        let notes = self.sessions.get(session);
        let project = notes.and_then(|notes| notes.project.clone());
        add(self.weeks.entry((week_of(at), project)).or_default());
        add(&mut self.report.all);
        if at >= self.hour_ago {
            add(&mut self.report.hour);
        }
    }

    fn finish(mut self, now: Timestamp) -> SpendingReport {
        let names: Vec<String> = self.sessions.keys().cloned().collect();
        for name in &names {
            self.close_compaction(name);
            self.close_unsent(name);
        }
        let mut report = self.report;
        report.weeks = self
            .weeks
            .into_iter()
            .map(|((week, project), sum)| ProjectWeek { project, week, sum })
            .collect();
        report.weeks.sort_by(|a, b| {
            let newer = b.week.cmp(&a.week);
            newer.then_with(|| b.sum.cost_usd.total_cmp(&a.sum.cost_usd))
        });
        report.misses.reverse();
        let resumes = self.sessions.into_iter().filter_map(|(session, notes)| {
            ColdResume::from_last(session, &notes.last?, now, self.cache_seconds)
        });
        report.resumes = resumes.collect();
        report
            .resumes
            .sort_by(|a, b| b.cold_usd.total_cmp(&a.cold_usd));
        report
    }
}

impl OpenCompaction {
    fn weigh(&self) -> CompactionCost {
        let multiples = self.price.as_ref().and_then(CacheMultiples::from_price);
        let balance = EconomyNumbers {
            history: self.tokens.0,
            view: self.tokens.1,
            multiples: multiples.unwrap_or(CacheMultiples::UNCACHED),
            warmth: self.warmth.unwrap_or(CacheWarmth::Warm),
            further_requests: self.requests as f64,
            growth: 0.0,
            summary_cost: 0.0,
            rework: 0.0,
        }
        .weigh();
        let none = EconomyNumbers {
            further_requests: 0.0,
            ..balance.numbers
        };
        let dollars = |tokens: f64| self.price.map(|price| tokens * price.input / 1e6);
        CompactionCost {
            cause: self.cause,
            warmth: self.warmth,
            requests: self.requests,
            break_even: balance.break_even,
            cost_usd: dollars(-none.weigh().saving),
            // What nobody went on with has cost nothing yet: its view was never sent.
            saved_usd: match self.requests {
                0 => None,
                _ => dollars(balance.saving),
            },
        }
    }
}

impl ColdResume {
    fn from_last(
        session: String,
        last: &LastRequest,
        now: Timestamp,
        cache_seconds: i64,
    ) -> Option<ColdResume> {
        let model = last.model.clone()?;
        let price = price_of(Some(&model))?;
        let (prompt, answer) = (last.usage.prompt_tokens().0, last.usage.output_tokens);
        let write = price.cache_write.unwrap_or(price.input);
        let read = price.cache_read.unwrap_or(price.input);
        let idle = now.duration_since(last.at).as_secs();
        Some(ColdResume {
            session,
            model,
            last_at: last.at,
            tokens: Tokens(prompt + answer),
            seconds_left: (cache_seconds - idle).max(0),
            warm_usd: (prompt as f64 * read + answer as f64 * write) / 1e6,
            cold_usd: (prompt + answer) as f64 * write / 1e6,
        })
    }
}

fn price_of(model: Option<&str>) -> Option<ModelPrice> {
    find_model(model?)?.price
}

#[cfg(test)]
mod tests;
