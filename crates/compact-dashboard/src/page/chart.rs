//! Charts as SVG without a script: bars, and the curve of a session. Colours come from the style sheet.

use compact::overview::SessionCurve;
use maud::{Markup, html};

use crate::text::{group_digits, percent, short_number};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 240.0;
/// Space for labels: left, right, top, bottom.
const MARGIN: (f64, f64, f64, f64) = (56.0, 12.0, 16.0, 28.0);
/// The most columns that are drawn: more would be narrower than a pixel.
const COLUMNS: usize = 480;

/// Shows a share as a bar.
pub(crate) fn share_bar(share: f64, label: &str) -> Markup {
    let width = (share.clamp(0.0, 1.0) * 100.0 * 10.0).round() / 10.0;
    let class = match share {
        share if share >= 0.95 => "fill over",
        share if share >= 0.8 => "fill high",
        _ => "fill",
    };
    html! {
        svg.bar viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track width="100" height="4" rx="1" {}
            rect class=(class) width=(width) height="4" rx="1" {}
        }
    }
}

/// Shows parts of a whole side by side, each with a class.
pub(crate) fn stacked_bar(parts: &[(&str, u64)], label: &str) -> Markup {
    let all = parts.iter().map(|(_, size)| size).sum::<u64>().max(1);
    let mut start = 0.0;
    let places = parts.iter().map(|(class, size)| {
        let width = *size as f64 / all as f64 * 100.0;
        let place = (*class, start, width);
        start += width;
        place
    });
    let places: Vec<(&str, f64, f64)> = places.collect();
    html! {
        svg.bar.stacked viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=(label) {
            @for (class, x, width) in places {
                rect class=(class) x=(format!("{x:.2}")) width=(format!("{width:.2}")) height="4" {}
            }
        }
    }
}

/// A compaction on the curve.
pub(crate) struct CurveMark {
    /// The call before which it happened.
    pub(crate) call: usize,
    /// Its page.
    pub(crate) address: String,
    /// What it did, in words.
    pub(crate) label: String,
}

/// One column of the curve: the first call in it, and the most that a call in it was sent.
struct CurveColumn {
    call: usize,
    tokens: u64,
}

/// Draws what each call was sent, with compactions marked and the window as a line.
pub(crate) fn session_curve(
    curve: &SessionCurve,
    last_view: Option<u64>,
    window: u64,
    marks: &[CurveMark],
) -> Markup {
    let plot = CurvePlot::new(curve, last_view, window);
    let label = format!(
        "Tokens sent with each of {} calls; the most was {} of a window of {} ({}).",
        curve.calls.len(),
        group_digits(plot.peak),
        group_digits(window),
        percent(plot.peak as f64 / window.max(1) as f64),
    );
    html! {
        svg.curve viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="group" aria-label=(label) {
            (plot.render_grid())
            path.area d=(plot.area_path()) {}
            path.line d=(plot.line_path()) {}
            (plot.render_marks(marks))
        }
    }
}

struct CurvePlot {
    columns: Vec<CurveColumn>,
    calls: usize,
    made: usize,
    top: f64,
    peak: u64,
    window: u64,
}

impl CurvePlot {
    fn new(curve: &SessionCurve, last_view: Option<u64>, window: u64) -> CurvePlot {
        let sizes = curve.calls.iter().map(|call| call.tokens.0);
        let sizes: Vec<u64> = sizes.chain(last_view).collect();
        let step = sizes.len().div_ceil(COLUMNS).max(1);
        let columns = sizes
            .chunks(step)
            .enumerate()
            .map(|(at, chunk)| CurveColumn {
                call: at * step,
                tokens: chunk.iter().copied().max().unwrap_or(0),
            });
        let mut columns: Vec<CurveColumn> = columns.collect();
        // What the last compaction left is the end of the curve, however many calls share its column.
        if let (Some(after), true) = (last_view, step > 1) {
            columns.push(CurveColumn {
                call: sizes.len(),
                tokens: after,
            });
        }
        let peak = sizes.iter().copied().max().unwrap_or(0);
        // A window that is much larger than all that was sent would press the curve to the ground.
        let shown = if peak * 3 >= window {
            window.max(peak)
        } else {
            peak
        };
        CurvePlot {
            columns,
            calls: sizes.len().max(2),
            made: curve.calls.len(),
            top: shown.max(1) as f64 * 1.08,
            peak,
            window,
        }
    }

    fn x(&self, call: usize) -> f64 {
        let (left, right, _, _) = MARGIN;
        left + call as f64 / (self.calls - 1) as f64 * (WIDTH - left - right)
    }

    fn y(&self, tokens: f64) -> f64 {
        let (_, _, top, bottom) = MARGIN;
        HEIGHT - bottom - (tokens / self.top).min(1.0) * (HEIGHT - top - bottom)
    }

    fn line_path(&self) -> String {
        let mut path = String::new();
        for (at, column) in self.columns.iter().enumerate() {
            let command = if at == 0 { 'M' } else { 'L' };
            let (x, y) = (
                self.x(column.call.min(self.calls - 1)),
                self.y(column.tokens as f64),
            );
            path.push_str(&format!("{command}{x:.1} {y:.1}"));
        }
        path
    }

    fn area_path(&self) -> String {
        let Some(last) = self.columns.last() else {
            return String::new();
        };
        let ground = self.y(0.0);
        let (first, last) = (self.x(0), self.x(last.call.min(self.calls - 1)));
        format!(
            "{}L{last:.1} {ground:.1}L{first:.1} {ground:.1}Z",
            self.line_path()
        )
    }

    fn render_grid(&self) -> Markup {
        let (left, right, _, bottom) = MARGIN;
        let steps = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| share * self.top / 1.08);
        let end = WIDTH - right;
        html! {
            @for tokens in steps {
                @let y = format!("{:.1}", self.y(tokens));
                line.grid x1=(left) x2=(end) y1=(y) y2=(y) {}
                text.tick.end x=(left - 8.0) y=(format!("{:.1}", self.y(tokens) + 4.0)) { (short_number(tokens as u64)) }
            }
            @if (self.window as f64) <= self.top {
                @let y = format!("{:.1}", self.y(self.window as f64));
                line.window x1=(left) x2=(end) y1=(y) y2=(y) {}
                text.tick.end x=(end) y=(format!("{:.1}", self.y(self.window as f64) - 5.0)) { "window" }
            }
            text.tick x=(left) y=(HEIGHT - bottom + 18.0) { "first call" }
            text.tick.end x=(end) y=(HEIGHT - bottom + 18.0) { (group_digits(self.made as u64)) " calls" }
        }
    }

    fn render_marks(&self, marks: &[CurveMark]) -> Markup {
        let (_, _, top, bottom) = MARGIN;
        let many = marks.len() > 24;
        html! {
            @for (number, mark) in marks.iter().enumerate() {
                @let x = format!("{:.1}", self.x(mark.call.min(self.calls - 1)));
                a href=(mark.address) aria-label=(mark.label) {
                    line.mark x1=(x) x2=(x) y1=(top) y2=(HEIGHT - bottom) {}
                    @if !many {
                        g aria-hidden="true" {
                            circle.mark cx=(x) cy=(top) r="9" {}
                            text.mark x=(x) y=(top + 4.0) { (number + 1) }
                        }
                    }
                }
            }
        }
    }
}
