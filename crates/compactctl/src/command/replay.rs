//! `replay`: plays recorded sessions forward under one or more policies and windows. Stores nothing.

mod page;

use std::sync::Arc;

use compact::format::{ParsedTranscript, TranscriptScope};
use compact::message::Conversation;
use compact::policy::{EconomyMode, Profile};
use compact::redact::RedactionBoundary;
use compact::replay::{
    PlaySettings, Replay, Totals, call_cost, map_on_all_cores, replay_conversation,
};
use compact::token::{self, ModelPrice, Tokens};
use serde_json::{Value, json};

use crate::answer::{CommandAnswer, set_field, settings_line};
use crate::app::{self, App};
use crate::args::{GlobalArgs, ReplayArgs as Args};
use crate::command::results::{self, ResultDocuments, quote_csv};
use crate::failure::Failure;
use crate::input::InputSource;
use crate::progress::TerminalProgress;
use crate::report::number::group_digits;
use crate::report::table::{Column, Table};
use crate::report::text::fit;

/// Replays every session under every policy.
pub(super) fn run(args: &Args, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    results::measure_and_write(&args.sheets, global, || replay_all(args, global))
}

fn replay_all(args: &Args, global: &GlobalArgs) -> Result<ResultDocuments, Failure> {
    let recordings = args
        .files
        .iter()
        .map(|file| RecordedSession::read(file, args));
    let recordings = recordings.collect::<Result<Vec<_>, _>>()?;
    let policies = policies(args, global)?;
    let _progress = TerminalProgress::over_bytes(global, usize::MAX, "replaying");
    let mut played = Vec::new();
    for policy in &policies {
        let runs = map_on_all_cores(&recordings, |recording| policy.play(recording));
        let runs = runs.into_iter().collect::<Result<Vec<_>, Failure>>()?;
        played.push(PolicyReplay {
            name: policy.name(policies.iter()),
            runs,
        });
    }
    let settings = policies
        .first()
        .map(|policy| settings_line(policy.app.config_files()));
    let settings = settings.unwrap_or_default();
    Ok(ResultDocuments {
        json: played.iter().map(PolicyReplay::to_json).collect(),
        human: render_replays(&played) + &settings,
        csv: calls_csv(&played),
        html: page::html(&played),
        code: 0,
    })
}

/// A session that was read.
struct RecordedSession {
    name: String,
    model: Option<String>,
    parsed: ParsedTranscript,
}

impl RecordedSession {
    fn read(file: &std::path::Path, args: &Args) -> Result<RecordedSession, Failure> {
        let source = InputSource::read(file)?.select_session(args.session_index)?;
        let parsed = source.parse(args.format, TranscriptScope::Whole)?;
        let model = args.model.as_ref().or(parsed.conversation.model.as_ref());
        Ok(RecordedSession {
            name: source.name,
            model: model.cloned(),
            parsed,
        })
    }
}

/// What sessions are played under.
struct ReplayPolicy {
    profile: Option<Profile>,
    app: App,
    window: Option<u64>,
    target: Option<f64>,
    /// Whether the price of cached prompts decides too, whatever the configuration says.
    economy: Option<EconomyMode>,
}

/// Every profile in every window with every target; the configuration's own where none is named.
fn policies(args: &Args, global: &GlobalArgs) -> Result<Vec<ReplayPolicy>, Failure> {
    let profiles: Vec<Option<Profile>> = match global.profile.as_slice() {
        [] => vec![None],
        named => named.iter().copied().map(Some).collect(),
    };
    let windows: Vec<Option<u64>> = match args.window.as_slice() {
        [] => vec![None],
        given => given.iter().copied().map(Some).collect(),
    };
    let targets: Vec<Option<f64>> = match args.target.as_slice() {
        [] => vec![None],
        given => given.iter().copied().map(Some).collect(),
    };
    let mut policies = Vec::new();
    for profile in profiles {
        for (window, target) in windows
            .iter()
            .flat_map(|w| targets.iter().map(move |t| (w, t)))
        {
            for economy in economies(args) {
                policies.push(ReplayPolicy {
                    profile,
                    app: App::load_with_profile(global, profile)?,
                    window: *window,
                    target: *target,
                    economy,
                });
            }
        }
    }
    Ok(policies)
}

/// The configuration's own, or thresholds alone beside thresholds with the price of cached prompts.
fn economies(args: &Args) -> Vec<Option<EconomyMode>> {
    match args.economy {
        true => vec![Some(EconomyMode::Off), Some(EconomyMode::Act)],
        false => vec![None],
    }
}

impl ReplayPolicy {
    /// The profile, and the window and the target where several are compared.
    fn name<'p>(&self, all: impl Iterator<Item = &'p ReplayPolicy>) -> String {
        let profile = self.profile.map_or("configured", Profile::as_str);
        let windows: std::collections::BTreeSet<_> = all.map(|p| p.window).collect();
        let window = self.window.filter(|_| windows.len() > 1);
        let window = window.map_or_else(String::new, |w| format!(" {}", group_digits(w)));
        let target = self.target.map_or_else(String::new, |t| format!(" {t}"));
        let economy = match self.economy {
            Some(EconomyMode::Act) => " economy",
            _ => "",
        };
        match self.profile {
            None if self.target.is_some() => format!("target{target}{window}{economy}"),
            None if !economy.is_empty() => format!("economy{window}"),
            _ => format!("{profile}{window}{target}{economy}"),
        }
    }

    fn play(&self, recording: &RecordedSession) -> Result<SessionReplay, Failure> {
        let model = recording.model.as_deref().or(self.app.model());
        let window = self.window.map(Tokens);
        let window = window.unwrap_or_else(|| self.app.compact().window(model).tokens);
        let mut policy = self.app.base_policy().clone();
        policy.target_of_trigger = self.target.unwrap_or(policy.target_of_trigger);
        policy.economy.mode = self.economy.or(policy.economy.mode);
        let terms = PlaySettings {
            policy,
            window,
            estimator: self.app.compact().estimator(model),
            redactor: Arc::clone(self.app.compact().redactor(RedactionBoundary::Summary)),
        };
        let ParsedTranscript {
            conversation,
            document,
            ..
        } = &recording.parsed;
        let named = Conversation {
            model: model.map(str::to_owned),
            ..conversation.clone()
        };
        let replay = app::block_on(async {
            Ok(replay_conversation(&named, document.rules(), &terms).await?)
        })?;
        let price = model
            .and_then(token::find_model)
            .and_then(|model| model.price);
        Ok(SessionReplay {
            file: recording.name.clone(),
            model: model.map(str::to_owned),
            totals: replay.totals(price.as_ref()),
            replay,
            price,
        })
    }
}

/// One session under one policy.
struct SessionReplay {
    file: String,
    model: Option<String>,
    replay: Replay,
    price: Option<ModelPrice>,
    totals: Totals,
}

/// All sessions under one policy.
struct PolicyReplay {
    name: String,
    runs: Vec<SessionReplay>,
}

impl PolicyReplay {
    fn totals(&self) -> Totals {
        let mut all = self.runs.iter().map(|run| run.totals.clone());
        let first = all.next().unwrap_or_default();
        all.fold(first, |sum, next| sum.merge(&next))
    }

    fn to_json(&self) -> Value {
        let sessions: Vec<Value> = self.runs.iter().map(SessionReplay::to_json).collect();
        let mut json = json!(self.totals());
        set_field(&mut json, "policy", self.name.as_str());
        set_field(&mut json, "sessions", sessions);
        json
    }
}

impl SessionReplay {
    fn to_json(&self) -> Value {
        let mut json = json!(self.totals);
        set_field(&mut json, "file", self.file.as_str());
        set_field(&mut json, "model", self.model.clone());
        set_field(&mut json, "window", self.replay.window.0);
        json
    }
}

/// How much of a name fits beside the numbers.
const NAME: usize = 14;

fn render_replays(played: &[PolicyReplay]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([
        text, number, number, number, number, number, number, number, number,
    ]);
    table.add_row(without_calls(page::HEAD.map(str::to_owned)));
    for policy in played {
        let name = fit(&policy.name, NAME);
        table.add_row(without_calls(page::totals_cells(&name, &policy.totals())));
        for run in policy.runs.iter().filter(|_| policy.runs.len() > 1) {
            let file = run.file.rsplit('/').next().unwrap_or(&run.file);
            let name = format!("- {}", fit(file, NAME - 2));
            table.add_row(without_calls(page::totals_cells(&name, &run.totals)));
        }
    }
    let failed = played
        .iter()
        .flat_map(|p| &p.runs)
        .flat_map(|run| &run.replay.calls);
    let reason = failed.filter_map(|call| call.failure.as_deref()).next();
    let reason = reason.map_or_else(String::new, |r| format!("first failure: {r}\n"));
    format!(
        "{}{reason}\nover: requests above the window. cached: what the request before began with.\n\
         kept: what receipts prove. recall: of what the agent named again after the first\n\
         compaction, the share that its view still carried.\n",
        table.render()
    )
}

/// A terminal has no room for the calls.
fn without_calls([name, _, rest @ ..]: [String; 10]) -> [String; 9] {
    let [a, b, c, d, e, f, g, h] = rest;
    [name, a, b, c, d, e, f, g, h]
}

/// One row per call.
fn calls_csv(played: &[PolicyReplay]) -> String {
    let mut out = "policy,file,call,entries,sent,cached,answered,pressure,compacted,retention,\
                   remembered,cost,failure,reason\n"
        .to_owned();
    for policy in played {
        for run in &policy.runs {
            for at in 0..run.replay.calls.len() {
                out.push_str(&run.csv_row(&policy.name, at));
            }
        }
    }
    out
}

impl SessionReplay {
    fn csv_row(&self, policy: &str, at: usize) -> String {
        let Some(call) = self.replay.calls.get(at) else {
            return String::new();
        };
        let retention = call.receipt.as_ref().and_then(|r| r.retention.score);
        let remembered = self.replay.remembered.get(at).copied().flatten();
        let cost = self.price.as_ref().map(|price| call_cost(call, price));
        let cells = [
            quote_csv(policy),
            quote_csv(&self.file),
            (at + 1).to_string(),
            call.entries.to_string(),
            call.sent.to_string(),
            call.cached.to_string(),
            call.answered.to_string(),
            decimals(Some(call.pressure)),
            u8::from(call.receipt.is_some()).to_string(),
            decimals(retention),
            decimals(remembered),
            decimals(cost),
            quote_csv(call.failure.as_deref().unwrap_or_default()),
            quote_csv(&call.reason),
        ];
        cells.join(",") + "\n"
    }
}

fn decimals(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}
