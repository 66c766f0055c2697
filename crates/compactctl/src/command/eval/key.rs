//! The answer keys of the example sessions, in windows of their own size.

use std::fmt::Write;

use compact_eval::compaction::Engine;
use compact_eval::key::{self, Found, Manner};
use compact_eval::plot;
use serde_json::json;

use crate::args::Global;
use crate::command::sheet::Findings;
use crate::failure::{Code, Failure};
use crate::progress::Progress;
use crate::report::number::{grouped, percent};
use crate::report::table::{Column, Table};

/// The share of each key that must be found.
const FLOOR: f64 = 0.9;

const HEAD: [&str; 6] = ["session", "told", "window", "view", "facts", "found"];

/// Looks for the facts of every example.
pub fn run(engine: &Engine, global: &Global) -> Result<Findings, Failure> {
    let _progress = Progress::over_bytes(global, usize::MAX, "playing");
    let keys = key::run(engine.policy())?;
    Ok(Findings {
        json: json!(keys),
        human: tell(&keys),
        csv: csv(&keys),
        html: plot::page(
            "Examples in their own windows",
            &plot::table(HEAD, keys.iter().map(cells)),
        ),
        code: match keys.iter().all(|found| found.share() >= FLOOR) {
            true => 0,
            false => Code::Check as u8,
        },
    })
}

fn manner(found: &Found) -> &'static str {
    match found.manner {
        Manner::Played => "call by call",
        Manner::AtOnce => "at once",
    }
}

fn cells(found: &Found) -> [String; 6] {
    [
        found.session.to_owned(),
        manner(found).to_owned(),
        grouped(found.window),
        grouped(found.shown),
        grouped(found.asked as u64),
        percent(found.share()),
    ]
}

fn tell(keys: &[Found]) -> String {
    let [text, number] = [Column::left(), Column::right()];
    let mut table = Table::new([text, text, number, number, number, number]);
    table.row(HEAD.map(str::to_owned));
    keys.iter().for_each(|found| table.row(cells(found)));
    let mut out = table.render();
    let short = keys.iter().filter(|found| found.share() < FLOOR).count();
    let verdict = match short {
        0 => format!("each keeps at least {} of its facts", percent(FLOOR)),
        n => format!(
            "{n} of {} keep LESS than the {} promised",
            keys.len(),
            percent(FLOOR)
        ),
    };
    let _ = writeln!(out, "{verdict}");
    out
}

fn csv(keys: &[Found]) -> String {
    let mut out = "session,told,window,view,facts,found\n".to_owned();
    for f in keys {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{}",
            f.session,
            manner(f),
            f.window,
            f.shown,
            f.asked,
            f.found
        );
    }
    out
}
