//! Replays as table rows and as a page with curves.

use std::fmt::Write;

use compact::chart::SessionChart;
use compact::replay::{Totals, call_cost};

use super::{PolicyReplay, SessionReplay};
use crate::report::number::group_digits;
use crate::report::plot::{self, Axis, Chart, Series, Stroke};

/// What a row says.
pub(super) const HEAD: [&str; 10] = [
    "policy",
    "calls",
    "compacted",
    "peak",
    "over",
    "sent",
    "cached",
    "cost",
    "kept",
    "recall",
];

/// One row.
pub(super) fn totals_cells(name: &str, totals: &Totals) -> [String; 10] {
    let failed = match totals.failures {
        0 => String::new(),
        failed => format!(" ({failed} failed)"),
    };
    let cached = totals.cached_tokens as f64 / totals.tokens_sent.max(1) as f64;
    let whole = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
    };
    [
        name.to_owned(),
        group_digits(totals.calls as u64),
        format!("{}{failed}", group_digits(totals.compactions as u64)),
        whole(Some(totals.peak_pressure)),
        group_digits(totals.overflows as u64),
        format!("{:.2}M", totals.tokens_sent as f64 / 1e6),
        whole(Some(cached)),
        totals
            .cost
            .map_or_else(|| "-".to_owned(), |cost| format!("${cost:.2}")),
        whole(totals.retention),
        whole(totals.remembered),
    ]
}

/// The page: all policies in one table, then the curves of each session.
pub(super) fn html(played: &[PolicyReplay]) -> String {
    let rows = played
        .iter()
        .map(|policy| totals_cells(&policy.name, &policy.totals()));
    let mut body = plot::html_table(HEAD, rows);
    let sessions = played
        .iter()
        .map(|policy| policy.runs.len())
        .max()
        .unwrap_or(0);
    for at in 0..sessions {
        let runs: Vec<(&str, &SessionReplay)> = played
            .iter()
            .filter_map(|policy| Some((policy.name.as_str(), policy.runs.get(at)?)))
            .collect();
        if let Some((_, run)) = runs.first() {
            let _ = writeln!(body, "<h2>{}</h2>", plot::escape(&run.file));
        }
        for chart in [
            sent_chart(&runs),
            cached_chart(&runs),
            remembered_chart(&runs),
            cost_chart(&runs),
        ] {
            body.push_str(&chart.to_svg());
        }
        for (name, run) in &runs {
            let drawn = SessionChart::from_replay(&run.replay);
            let _ = writeln!(body, "<h3>{}: every call</h3>", plot::escape(name));
            body.push_str(&drawn.to_standalone_svg());
            let _ = writeln!(body, "<p>{}</p>", plot::escape(&drawn.describe()));
        }
        let rows = runs
            .iter()
            .map(|(name, run)| totals_cells(name, &run.totals));
        body.push_str(&plot::html_table(HEAD, rows));
    }
    plot::html_page("Replay", &body)
}

fn chart(title: &str, y: Axis, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: axis("call of the model", None),
        y,
        series,
    }
}

fn axis(label: &str, range: Option<(f64, f64)>) -> Axis {
    let label = label.to_owned();
    Axis { label, range }
}

fn line_series(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.to_owned(),
        points,
        ..Series::default()
    }
}

fn sent_chart(runs: &[(&str, &SessionReplay)]) -> Chart {
    let mut series: Vec<Series> = runs
        .iter()
        .map(|(name, run)| {
            let sent = run.replay.calls.iter().map(|call| call.sent.0 as f64);
            line_series(name, numbered(sent))
        })
        .collect();
    if let Some((_, run)) = runs.first() {
        let (window, calls) = (run.replay.window.0 as f64, run.replay.calls.len() as f64);
        series.push(Series {
            stroke: Stroke::Dashed,
            ..line_series("window", vec![(1.0, window), (calls.max(1.0), window)])
        });
    }
    chart("Tokens sent", axis("tokens", None), series)
}

fn cached_chart(runs: &[(&str, &SessionReplay)]) -> Chart {
    let series = runs.iter().map(|(name, run)| {
        let calls = run.replay.calls.iter();
        let shares = calls.map(|call| call.cached.0 as f64 / call.sent.0.max(1) as f64);
        line_series(name, numbered(shares))
    });
    let title = "Share of a request that the one before it had begun with";
    chart(title, axis("share", Some((0.0, 1.0))), series.collect())
}

fn remembered_chart(runs: &[(&str, &SessionReplay)]) -> Chart {
    let series = runs.iter().map(|(name, run)| {
        let mut points = Vec::new();
        // The mean so far is calmer than the call at hand.
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, share) in run.replay.remembered.iter().enumerate() {
            if let Some(share) = share {
                sum += share;
                count += 1.0;
                points.push(((i + 1) as f64, sum / count));
            }
        }
        line_series(name, points)
    });
    let title = "Of what the agent named again, the share that its view carried (mean so far)";
    chart(title, axis("share", Some((0.0, 1.0))), series.collect())
}

fn cost_chart(runs: &[(&str, &SessionReplay)]) -> Chart {
    let series = runs.iter().filter_map(|(name, run)| {
        let price = run.price.as_ref()?;
        let mut sum = 0.0;
        let calls = run.replay.calls.iter().map(|call| {
            sum += call_cost(call, price);
            sum
        });
        Some(line_series(name, numbered(calls)))
    });
    chart("Cost so far", axis("US dollars", None), series.collect())
}

/// Values by the number of their call.
fn numbered(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    values
        .enumerate()
        .map(|(i, value)| ((i + 1) as f64, value))
        .collect()
}
