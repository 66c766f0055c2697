//! The chart of a session as SVG: what each call was sent, with compactions marked and the window as a line.
//!
//! The dashboard, `replay --html` and notebooks draw the same one. It needs no script. A page with a style sheet colours it
//! by classes; elsewhere it brings its own colours.

use std::fmt::Write;

use compact_core::token::Tokens;
use compact_runtime::port::catalog::{CompactionRecord, StoredReceipt};
use compact_runtime::reading::SessionCurve;
use compact_runtime::replay::Replay;
use serde_json::Value;

use crate::compact::Compact;
use crate::error::Error;
use crate::session_list::compaction_numbers;

/// The most columns that are drawn: more would be narrower than a pixel.
const COLUMNS: usize = 480;
/// How wide a mark is for a finger, and so how far apart numbers stand.
const TARGET: f64 = 28.0;
/// How far below its number the line of a mark begins.
const LEADER: f64 = 14.0;
/// Colours that are read on white and on black.
const STYLE: &str = ".compact-curve{font:12px system-ui,sans-serif;max-width:960px}\
.compact-curve .area{fill:#3f8873;opacity:.18}\
.compact-curve .line{fill:none;stroke:#3f8873;stroke-width:1.6}\
.compact-curve .grid{stroke:#888;opacity:.3}\
.compact-curve .window{stroke:#b4513b;stroke-dasharray:5 4}\
.compact-curve .tick{fill:#777}\
.compact-curve .end{text-anchor:end}\
.compact-curve path.mark{fill:none;stroke:#777}\
.compact-curve circle.mark{fill:#555}\
.compact-curve text.mark{fill:#fff;text-anchor:middle;font-size:11px}";

/// What each call of a session was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChart {
    /// Tokens of each call, the oldest first.
    pub calls: Vec<u64>,
    /// Tokens of the view that the last compaction left, where no call has seen it.
    pub last_view: Option<u64>,
    /// The window.
    pub window: u64,
    /// The compactions.
    pub marks: Vec<ChartMark>,
}

/// A compaction on the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartMark {
    /// The call before which it was made.
    pub call: usize,
    /// What it did, in words.
    pub label: String,
    /// Where more is said of it.
    pub address: Option<String>,
}

/// The place that a chart is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartSize {
    /// A page.
    Wide,
    /// A telephone.
    Narrow,
}

impl Compact {
    /// Returns the chart of a session on record.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// compact.session("runs").compact(&messages, None).await?;
    /// let chart = compact.session_chart("runs").await?;
    /// assert_eq!((chart.calls.len(), chart.marks.len()), (40, 1));
    /// assert!(chart.to_standalone_svg().starts_with("<svg"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn session_chart(&self, session: &str) -> Result<SessionChart, Error> {
        let records = self.session_records(session).await?;
        let Some(latest) = records.last() else {
            return Err(compact_runtime::Error::NotFound(session.to_owned()).into());
        };
        let curve = self.session_curve(&records).await?;
        let model = latest.receipt.model().or(curve.model.as_deref());
        let window = latest.receipt.window();
        let window = window.unwrap_or_else(|| self.window(model).tokens);
        Ok(SessionChart::from_session(&curve, &records, window))
    }
}

impl SessionChart {
    /// Draws a session on record; a compaction after which no call was archived stands at the end.
    pub fn from_session(
        curve: &SessionCurve,
        records: &[CompactionRecord],
        window: Tokens,
    ) -> SessionChart {
        let numbers = compaction_numbers(records);
        let made = records.iter().zip(numbers).enumerate();
        let marks = made.filter_map(|(at, (record, number))| {
            let mut calls = curve.calls.iter();
            let seen = calls.position(|call| call.compaction == Some(at));
            Some(ChartMark {
                call: seen.unwrap_or(curve.calls.len()),
                label: format!(
                    "Compaction {}: {}",
                    number?,
                    describe_change(&record.receipt)
                ),
                address: None,
            })
        });
        let last_view = records.last().and_then(|record| {
            let fixed = record.receipt.as_json().get("tokens_fixed");
            let fixed = fixed.and_then(Value::as_u64).unwrap_or(0);
            Some(record.receipt.tokens_after()?.0 + fixed)
        });
        SessionChart {
            calls: curve.calls.iter().map(|call| call.tokens.0).collect(),
            last_view,
            window: window.0,
            marks: marks.collect(),
        }
    }

    /// Draws what a policy would have sent with each call.
    pub fn from_replay(replay: &Replay) -> SessionChart {
        let calls = replay.calls.iter().enumerate();
        let made = calls.filter_map(|(at, call)| Some((at, call.receipt.as_ref()?)));
        let marks = made.enumerate().map(|(number, (at, receipt))| ChartMark {
            call: at,
            label: format!(
                "Compaction {}: {} → {} tokens",
                number + 1,
                group_digits(receipt.tokens_before.0),
                group_digits(receipt.tokens_after.0)
            ),
            address: None,
        });
        SessionChart {
            calls: replay.calls.iter().map(|call| call.sent.0).collect(),
            last_view: None,
            window: replay.window.0,
            marks: marks.collect(),
        }
    }

    /// Returns it for a page whose style sheet knows its classes.
    pub fn to_svg(&self, size: ChartSize) -> String {
        CurvePlot::new(self, size).render("")
    }

    /// Returns it with colours of its own, for a notebook or a file.
    pub fn to_standalone_svg(&self) -> String {
        CurvePlot::new(self, ChartSize::Wide).render(STYLE)
    }

    /// Returns what it shows, in words.
    pub fn describe(&self) -> String {
        let peak = self.peak();
        format!(
            "Tokens sent with each of {} calls; the most was {} of a window of {} ({:.0} %).",
            group_digits(self.calls.len() as u64),
            group_digits(peak),
            group_digits(self.window),
            peak as f64 / self.window.max(1) as f64 * 100.0,
        )
    }

    fn peak(&self) -> u64 {
        let sizes = self.calls.iter().copied().chain(self.last_view);
        sizes.max().unwrap_or(0)
    }
}

/// Returns tokens before and after, in words.
pub fn describe_change(receipt: &StoredReceipt) -> String {
    let tokens = |tokens: Option<Tokens>| {
        tokens.map_or_else(|| "–".to_owned(), |tokens| group_digits(tokens.0))
    };
    let (before, after) = (receipt.tokens_before(), receipt.tokens_after());
    format!("{} → {} tokens", tokens(before), tokens(after))
}

/// One column: the first call in it, and the most that a call in it was sent.
struct CurveColumn {
    call: usize,
    tokens: u64,
}

struct CurvePlot<'a> {
    chart: &'a SessionChart,
    columns: Vec<CurveColumn>,
    /// Places from left to right.
    places: usize,
    top: f64,
    width: f64,
    height: f64,
}

/// Space for labels: left, right, top, bottom.
const MARGIN: (f64, f64, f64, f64) = (56.0, 12.0, 20.0, 28.0);

impl<'a> CurvePlot<'a> {
    fn new(chart: &'a SessionChart, size: ChartSize) -> CurvePlot<'a> {
        let sizes: Vec<u64> = chart.calls.iter().copied().chain(chart.last_view).collect();
        let step = sizes.len().div_ceil(COLUMNS).max(1);
        let chunks = sizes.chunks(step).enumerate();
        let columns = chunks.map(|(at, chunk)| CurveColumn {
            call: at * step,
            tokens: chunk.iter().copied().max().unwrap_or(0),
        });
        let mut columns: Vec<CurveColumn> = columns.collect();
        // What the last compaction left is the end of the curve, however many calls share its column.
        if let (Some(after), true) = (chart.last_view, step > 1) {
            columns.push(CurveColumn {
                call: sizes.len(),
                tokens: after,
            });
        }
        let (peak, window) = (chart.peak(), chart.window);
        // A window that is much larger than all that was sent would press the curve to the ground.
        let shown = match peak.saturating_mul(3) >= window {
            true => window.max(peak),
            false => peak,
        };
        let (width, height) = match size {
            ChartSize::Wide => (960.0, 240.0),
            ChartSize::Narrow => (380.0, 220.0),
        };
        CurvePlot {
            chart,
            columns,
            places: sizes.len().max(2),
            top: shown.max(1) as f64 * 1.08,
            width,
            height,
        }
    }

    fn render(&self, style: &str) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curve compact-curve\" viewBox=\"0 0 {} {}\" role=\"group\" aria-label=\"{}\">",
            self.width,
            self.height,
            escape(&self.chart.describe()),
        );
        if !style.is_empty() {
            let _ = write!(svg, "<style>{style}</style>");
        }
        self.draw_grid(&mut svg);
        let line = self.line_path();
        let _ = write!(svg, "<path class=\"area\" d=\"{}\"/>", self.close(&line));
        let _ = write!(svg, "<path class=\"line\" d=\"{line}\"/>");
        self.draw_marks(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    fn x(&self, call: usize) -> f64 {
        let (left, right, _, _) = MARGIN;
        let share = call.min(self.places - 1) as f64 / (self.places - 1) as f64;
        left + share * (self.width - left - right)
    }

    fn y(&self, tokens: f64) -> f64 {
        let (_, _, top, bottom) = MARGIN;
        self.height - bottom - (tokens / self.top).min(1.0) * (self.height - top - bottom)
    }

    fn line_path(&self) -> String {
        let mut path = String::new();
        for (at, column) in self.columns.iter().enumerate() {
            let command = if at == 0 { 'M' } else { 'L' };
            let (x, y) = (self.x(column.call), self.y(column.tokens as f64));
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        path
    }

    /// Makes an area of a line.
    fn close(&self, line: &str) -> String {
        let Some(last) = self.columns.last() else {
            return String::new();
        };
        let ground = self.y(0.0);
        let (first, last) = (self.x(0), self.x(last.call));
        format!("{line}L{last:.1} {ground:.1}L{first:.1} {ground:.1}Z")
    }

    fn draw_grid(&self, svg: &mut String) {
        let (left, right, _, bottom) = MARGIN;
        let end = self.width - right;
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let tokens = share * self.top / 1.08;
            let y = self.y(tokens);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{left}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
            let words = short_number(tokens as u64);
            draw_text(svg, "tick end", left - 8.0, y + 4.0, &words);
        }
        if (self.chart.window as f64) <= self.top {
            let y = self.y(self.chart.window as f64);
            let _ = write!(
                svg,
                "<line class=\"window\" x1=\"{left}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
            draw_text(svg, "tick end", end, y - 5.0, "window");
        }
        let y = self.height - bottom + 18.0;
        draw_text(svg, "tick", left, y, "first call");
        let calls = match self.chart.calls.len() as u64 {
            1 => "1 call".to_owned(),
            calls => format!("{} calls", group_digits(calls)),
        };
        draw_text(svg, "tick end", end, y, &calls);
    }

    /// Draws a line for each compaction, and its number above it. Where there are more than fit side by side, only the
    /// lines: numbers would cover each other, and links could not be hit.
    fn draw_marks(&self, svg: &mut String) {
        let places: Vec<f64> = self
            .chart
            .marks
            .iter()
            .map(|mark| self.x(mark.call))
            .collect();
        let (left, right, _, _) = MARGIN;
        let room = (left, self.width - right);
        let Some(numbers) = spread(&places, room) else {
            for x in places {
                self.draw_line(svg, x, x);
            }
            return;
        };
        let marks = self.chart.marks.iter().zip(places.iter().zip(&numbers));
        for (nth, (mark, (x, shown_at))) in marks.enumerate() {
            self.draw_mark(svg, mark, nth + 1, (*x, *shown_at));
        }
    }

    /// Draws one compaction at its call, with its number beside it where others are near.
    fn draw_mark(&self, svg: &mut String, mark: &ChartMark, number: usize, place: (f64, f64)) {
        let (_, _, top, bottom) = MARGIN;
        let ((x, shown_at), label) = (place, escape(&mark.label));
        let _ = match &mark.address {
            Some(to) => write!(svg, "<a href=\"{}\" aria-label=\"{label}\">", escape(to)),
            None => write!(
                svg,
                "<g role=\"img\" aria-label=\"{label}\"><title>{label}</title>"
            ),
        };
        if mark.address.is_some() {
            let _ = write!(
                svg,
                "<rect class=\"target\" x=\"{:.1}\" y=\"0\" width=\"{TARGET}\" height=\"{}\"/>",
                shown_at - TARGET / 2.0,
                self.height - bottom
            );
        }
        self.draw_line(svg, x, shown_at);
        let y = top - 6.0;
        let _ = write!(
            svg,
            "<g aria-hidden=\"true\"><circle class=\"mark\" cx=\"{shown_at:.1}\" cy=\"{y}\" r=\"9\"/>"
        );
        draw_text(svg, "mark", shown_at, y + 4.0, &number.to_string());
        svg.push_str("</g>");
        svg.push_str(if mark.address.is_some() {
            "</a>"
        } else {
            "</g>"
        });
    }

    /// Draws the line of a compaction, from its number down to its call.
    fn draw_line(&self, svg: &mut String, x: f64, shown_at: f64) {
        let (_, _, top, bottom) = MARGIN;
        let (bend, ground) = (top + LEADER, self.height - bottom);
        let _ = write!(
            svg,
            "<path class=\"mark\" d=\"M{shown_at:.1} {top}L{x:.1} {bend}L{x:.1} {ground:.1}\"/>"
        );
    }
}

/// Moves places apart until none covers its neighbour, each as little as it takes; `None` where there is no room for all.
fn spread(places: &[f64], (left, right): (f64, f64)) -> Option<Vec<f64>> {
    if (places.len().saturating_sub(1)) as f64 * TARGET > right - left {
        return None;
    }
    let mut spread: Vec<f64> = Vec::with_capacity(places.len());
    for place in places {
        let least = spread.last().map_or(left, |last| last + TARGET);
        spread.push(place.max(least));
    }
    let mut most = right;
    for place in spread.iter_mut().rev() {
        *place = place.min(most);
        most = *place - TARGET;
    }
    Some(spread)
}

fn draw_text(svg: &mut String, class: &str, x: f64, y: f64, words: &str) {
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(words)
    );
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a number with its digits in groups: `1,234,567`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number in few characters: `12.3k`.
pub fn short_number(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..100_000 => format!("{:.1}k", number as f64 / 1e3).replace(".0k", "k"),
        100_000..1_000_000 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(calls: usize) -> SessionChart {
        SessionChart {
            calls: (0..calls as u64).map(|call| call * 100).collect(),
            last_view: Some(50),
            window: 200_000,
            marks: vec![ChartMark {
                call: calls,
                label: "Compaction 1: <9> → 5 tokens".to_owned(),
                address: Some("/compaction?a=1&b=\"2\"".to_owned()),
            }],
        }
    }

    #[test]
    fn many_calls_make_no_more_columns_than_pixels() {
        let svg = chart(50_000).to_svg(ChartSize::Wide);
        assert!(svg.len() < 20_000, "{}", svg.len());
        let svg = SessionChart::default().to_svg(ChartSize::Narrow);
        assert!(svg.ends_with("</svg>"));
    }

    #[test]
    fn numbers_of_compactions_that_follow_each_other_stand_side_by_side() {
        let room = (56.0, 368.0);
        assert_eq!(spread(&[100.0, 200.0], room).unwrap(), [100.0, 200.0]);
        assert_eq!(
            spread(&[368.0, 368.0, 368.0], room).unwrap(),
            [312.0, 340.0, 368.0]
        );
        assert_eq!(spread(&[60.0, 61.0], room).unwrap(), [60.0, 88.0]);
        assert_eq!(spread(&[100.0; 13], room), None);
        let mut crowded = chart(10);
        crowded.marks = vec![crowded.marks.remove(0); 60];
        let svg = crowded.to_svg(ChartSize::Narrow);
        assert_eq!(svg.matches("class=\"mark\"").count(), 60);
        assert!(!svg.contains("<a "));
    }

    #[test]
    fn words_and_addresses_are_escaped_and_only_a_chart_by_itself_has_a_style() {
        let svg = chart(10).to_svg(ChartSize::Wide);
        assert!(svg.contains("href=\"/compaction?a=1&amp;b=&quot;2&quot;\""));
        assert!(svg.contains("Compaction 1: &lt;9&gt; → 5 tokens"));
        assert!(!svg.contains("<style>") && chart(10).to_standalone_svg().contains("<style>"));
    }
}
