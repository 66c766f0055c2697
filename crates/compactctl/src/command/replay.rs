//! `replay`: plays recorded sessions forward under one or more policies and windows. Stores nothing.

mod page;

use compact_core::profile::Profile;
use compact_core::token::Tokens;
use compact_core::window::{self, Price};
use compact_eval::parallel;
use compact_eval::play::Terms;
use compact_eval::replay::{self, Replay, Totals};
use compact_eval::report::quoted;
use compact_formats::{Parsed, Scope};
use serde_json::{Value, json};

use crate::answer::{Answer, set, settings_line};
use crate::args::{Global, Replay as Args};
use crate::command::sheet::{self, Findings};
use crate::failure::Failure;
use crate::input::Source;
use crate::progress::Progress;
use crate::report::number::grouped;
use crate::report::table::{Column, Table};
use crate::report::text::fit;
use crate::world::World;

/// Replays every session under every policy.
pub fn run(args: &Args, global: &Global) -> Result<Answer, Failure> {
    sheet::deliver(&args.sheets, global, || measure(args, global))
}

fn measure(args: &Args, global: &Global) -> Result<Findings, Failure> {
    let recordings = args.files.iter().map(|file| Recording::read(file, args));
    let recordings = recordings.collect::<Result<Vec<_>, _>>()?;
    let policies = policies(args, global)?;
    let _progress = Progress::over_bytes(global, usize::MAX, "replaying");
    let mut played = Vec::new();
    for policy in &policies {
        let runs = parallel::map(&recordings, |recording| policy.play(recording));
        let runs = runs.into_iter().collect::<Result<Vec<_>, Failure>>()?;
        played.push(Played {
            name: policy.name(policies.iter()),
            runs,
        });
    }
    let settings = policies
        .first()
        .map(|policy| settings_line(policy.world.files()));
    let settings = settings.unwrap_or_default();
    Ok(Findings {
        json: played.iter().map(Played::json).collect(),
        human: tell(&played) + &settings,
        csv: csv(&played),
        html: page::html(&played),
        code: 0,
    })
}

/// A session that was read.
struct Recording {
    name: String,
    model: Option<String>,
    parsed: Parsed,
}

impl Recording {
    fn read(file: &std::path::Path, args: &Args) -> Result<Recording, Failure> {
        let source = Source::read(file)?.session(args.session_index)?;
        let parsed = source.parse(args.format, Scope::Whole)?;
        let model = args.model.as_ref().or(parsed.conversation.model.as_ref());
        Ok(Recording {
            name: source.name,
            model: model.cloned(),
            parsed,
        })
    }
}

/// What sessions are played under.
struct Policy {
    profile: Option<Profile>,
    world: World,
    window: Option<u64>,
    target: Option<f64>,
}

/// Every profile in every window with every target; the configuration's own where none is named.
fn policies(args: &Args, global: &Global) -> Result<Vec<Policy>, Failure> {
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
            policies.push(Policy {
                profile,
                world: World::load_under(global, profile)?,
                window: *window,
                target: *target,
            });
        }
    }
    Ok(policies)
}

impl Policy {
    /// The profile, and the window and the target where several are compared.
    fn name<'p>(&self, all: impl Iterator<Item = &'p Policy>) -> String {
        let profile = self.profile.map_or("configured", Profile::as_str);
        let windows: std::collections::BTreeSet<_> = all.map(|p| p.window).collect();
        let window = self.window.filter(|_| windows.len() > 1);
        let window = window.map_or_else(String::new, |w| format!(" {}", grouped(w)));
        let target = self.target.map_or_else(String::new, |t| format!(" {t}"));
        match self.profile {
            None if self.target.is_some() => format!("target{target}{window}"),
            _ => format!("{profile}{window}{target}"),
        }
    }

    fn play(&self, recording: &Recording) -> Result<Run, Failure> {
        let model = recording.model.as_deref().or(self.world.model());
        let window = self.window.map(Tokens);
        let window = window.unwrap_or_else(|| self.world.window(model).tokens);
        let mut policy = self.world.base_policy().clone();
        policy.target_of_trigger = self.target.unwrap_or(policy.target_of_trigger);
        let terms = Terms {
            policy,
            window,
            estimator: self.world.estimator(model),
        };
        let Parsed {
            conversation,
            document,
            ..
        } = &recording.parsed;
        let replay = replay::replay(conversation, document.rules(), &terms)?;
        let price = model.and_then(window::find).and_then(|model| model.price);
        Ok(Run {
            file: recording.name.clone(),
            model: model.map(str::to_owned),
            totals: replay.totals(price.as_ref()),
            replay,
            price,
        })
    }
}

/// One session under one policy.
struct Run {
    file: String,
    model: Option<String>,
    replay: Replay,
    price: Option<Price>,
    totals: Totals,
}

/// All sessions under one policy.
struct Played {
    name: String,
    runs: Vec<Run>,
}

impl Played {
    fn totals(&self) -> Totals {
        let mut all = self.runs.iter().map(|run| run.totals.clone());
        let first = all.next().unwrap_or_default();
        all.fold(first, |sum, next| sum.and(&next))
    }

    fn json(&self) -> Value {
        let sessions: Vec<Value> = self.runs.iter().map(Run::json).collect();
        let mut json = json!(self.totals());
        set(&mut json, "policy", self.name.as_str());
        set(&mut json, "sessions", sessions);
        json
    }
}

impl Run {
    fn json(&self) -> Value {
        let mut json = json!(self.totals);
        set(&mut json, "file", self.file.as_str());
        set(&mut json, "model", self.model.clone());
        set(&mut json, "window", self.replay.window.0);
        json
    }
}

/// How much of a name fits beside the numbers.
const NAME: usize = 14;

fn tell(played: &[Played]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([
        text, number, number, number, number, number, number, number, number,
    ]);
    table.row(without_calls(page::HEAD.map(str::to_owned)));
    for policy in played {
        let name = fit(&policy.name, NAME);
        table.row(without_calls(page::cells(&name, &policy.totals())));
        for run in policy.runs.iter().filter(|_| policy.runs.len() > 1) {
            let file = run.file.rsplit('/').next().unwrap_or(&run.file);
            let name = format!("- {}", fit(file, NAME - 2));
            table.row(without_calls(page::cells(&name, &run.totals)));
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
fn csv(played: &[Played]) -> String {
    let mut out = "policy,file,call,entries,sent,cached,answered,pressure,compacted,retention,\
                   remembered,cost,failure\n"
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

impl Run {
    fn csv_row(&self, policy: &str, at: usize) -> String {
        let Some(call) = self.replay.calls.get(at) else {
            return String::new();
        };
        let retention = call.receipt.as_ref().map(|r| r.retention.score);
        let remembered = self.replay.remembered.get(at).copied().flatten();
        let cost = self.price.as_ref().map(|price| replay::cost(call, price));
        let cells = [
            quoted(policy),
            quoted(&self.file),
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
            quoted(call.failure.as_deref().unwrap_or_default()),
        ];
        cells.join(",") + "\n"
    }
}

fn decimals(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}
