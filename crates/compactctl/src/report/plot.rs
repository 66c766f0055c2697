//! Charts as SVG and pages that need nothing else: no script, no font, no network.

use std::fmt::Write;

/// A chart of lines over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chart {
    /// What it shows.
    pub title: String,
    /// What runs along the bottom.
    pub x: Axis,
    /// What runs up the side.
    pub y: Axis,
    /// The lines of the plot.
    pub series: Vec<Series>,
}

/// One side of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Axis {
    /// What it measures.
    pub label: String,
    /// Its ends; `None` for those of the points.
    pub range: Option<(f64, f64)>,
}

/// One line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    /// Its name.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
    /// For each point how far it may be off, lower and upper end.
    pub band: Vec<(f64, f64)>,
    /// Dashes tell a bound or a yardstick from what was measured.
    pub stroke: Stroke,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// What was measured.
    #[default]
    Solid,
    /// A bound or a yardstick.
    Dashed,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Space for labels: left, right, top, bottom.
const MARGIN: (f64, f64, f64, f64) = (64.0, 150.0, 32.0, 44.0);
const COLOURS: [&str; 8] = [
    "#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#1b7c83", "#bc4c00", "#57606a",
];

impl Chart {
    /// The chart as an `<svg>` element.
    pub(crate) fn to_svg(&self) -> String {
        let frame = PlotArea::of_chart(self);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\" \
             xmlns=\"http://www.w3.org/2000/svg\"><text x=\"{1}\" y=\"18\" class=\"title\">{0}</text>",
            escape(&self.title),
            MARGIN.0
        );
        out.push_str(&frame.render_axes(self));
        for (i, series) in self.series.iter().enumerate() {
            let colour = COLOURS.get(i % COLOURS.len()).copied().unwrap_or("#000");
            out.push_str(&frame.render_series(series, colour));
            out.push_str(&render_legend(series, i, colour));
        }
        out + "</svg>"
    }
}

fn render_legend(series: &Series, at: usize, colour: &str) -> String {
    let (x, y) = (WIDTH - MARGIN.1 + 16.0, MARGIN.2 + 8.0 + at as f64 * 18.0);
    format!(
        "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"{}/>\
         <text x=\"{}\" y=\"{}\">{}</text>",
        x + 18.0,
        series.stroke.dashes(),
        x + 24.0,
        y + 4.0,
        escape(&series.name),
    )
}

impl Stroke {
    fn dashes(self) -> &'static str {
        match self {
            Stroke::Solid => "",
            Stroke::Dashed => " stroke-dasharray=\"5 4\"",
        }
    }
}

/// From values to places.
struct PlotArea {
    x: (f64, f64),
    y: (f64, f64),
}

impl PlotArea {
    fn of_chart(chart: &Chart) -> PlotArea {
        let points = || chart.series.iter().flat_map(|s| &s.points);
        let bands = || chart.series.iter().flat_map(|s| &s.band);
        let ys = points()
            .map(|p| p.1)
            .chain(bands().flat_map(|b| [b.0, b.1]));
        PlotArea {
            x: chart
                .x
                .range
                .unwrap_or_else(|| value_range(points().map(|p| p.0))),
            y: chart.y.range.unwrap_or_else(|| (0.0, value_range(ys).1)),
        }
    }

    fn to_pixels(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |v: f64, (low, high): (f64, f64)| ((v - low) / (high - low)).clamp(0.0, 1.0);
        let (left, right, top, bottom) = MARGIN;
        (
            left + share(x, self.x) * (WIDTH - left - right),
            HEIGHT - bottom - share(y, self.y) * (HEIGHT - top - bottom),
        )
    }

    fn render_axes(&self, chart: &Chart) -> String {
        let mut out = String::new();
        for step in 0..=4 {
            let at = |(low, high): (f64, f64)| low + (high - low) * f64::from(step) / 4.0;
            let (x0, y) = self.to_pixels((self.x.0, at(self.y)));
            let (x1, _) = self.to_pixels((self.x.1, at(self.y)));
            let (x, y0) = self.to_pixels((at(self.x), self.y.0));
            let _ = write!(
                out,
                "<line x1=\"{x0:.1}\" x2=\"{x1:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"tick end\">{}</text>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" class=\"tick mid\">{}</text>",
                x0 - 6.0,
                y + 4.0,
                format_number(at(self.y)),
                y0 + 16.0,
                format_number(at(self.x)),
            );
        }
        let middle = (WIDTH - MARGIN.0 - MARGIN.1) / 2.0 + MARGIN.0;
        let _ = write!(
            out,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" class=\"mid\">{}</text>\
             <text transform=\"translate(14 {:.1}) rotate(-90)\" class=\"mid\">{}</text>",
            HEIGHT - 6.0,
            escape(&chart.x.label),
            HEIGHT / 2.0,
            escape(&chart.y.label),
        );
        out
    }

    fn render_series(&self, series: &Series, colour: &str) -> String {
        let mut out = String::new();
        if !series.band.is_empty() {
            let xs = || series.points.iter().map(|p| p.0);
            let high = xs().zip(&series.band).map(|(x, b)| (x, b.1));
            let low = xs().zip(&series.band).map(|(x, b)| (x, b.0));
            let edge: Vec<_> = high
                .chain(low.collect::<Vec<_>>().into_iter().rev())
                .collect();
            let _ = write!(
                out,
                "<polygon points=\"{}\" fill=\"{colour}\" opacity=\".12\"/>",
                self.format_points(&edge)
            );
        }
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{}/>",
            self.format_points(&series.points),
            series.stroke.dashes()
        );
        if series.points.len() <= 12 {
            for point in &series.points {
                let (x, y) = self.to_pixels(*point);
                let _ = write!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
                );
            }
        }
        out
    }

    fn format_points(&self, points: &[(f64, f64)]) -> String {
        let places = points.iter().map(|p| {
            let (x, y) = self.to_pixels(*p);
            format!("{x:.1},{y:.1}")
        });
        places.collect::<Vec<_>>().join(" ")
    }
}

/// Returns the smallest and the largest, apart even when they are one.
fn value_range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(none, |(l, h), v| (l.min(v), h.max(v)));
    match (low.is_finite(), low < high) {
        (true, true) => (low, high),
        (true, false) => (low, low + 1.0),
        _ => (0.0, 1.0),
    }
}

/// Returns a number in few characters.
fn format_number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", trim_zeros(value / 1e6, 1)),
        v if v >= 1e4 => format!("{}k", trim_zeros(value / 1e3, 0)),
        v if v >= 100.0 => trim_zeros(value, 0),
        v if v >= 10.0 => trim_zeros(value, 1),
        _ => trim_zeros(value, 3),
    }
}

fn trim_zeros(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Text that stays text in a page.
pub(crate) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1c2128;background:#fff}h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}\
svg{width:100%;height:auto;font:11px system-ui,sans-serif;fill:currentColor}.title{font-weight:600;\
font-size:13px}.tick{opacity:.7}.end{text-anchor:end}.mid{text-anchor:middle}\
.grid{stroke:currentColor;opacity:.15}table{border-collapse:collapse;width:100%;font-size:.9rem}\
td,th{padding:.2rem .5rem;text-align:right;border-bottom:1px solid #d0d7de;\
font-variant-numeric:tabular-nums}td:first-child,th:first-child,td.l,th.l{text-align:left}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}td,th{border-color:#30363d}}";

/// A page of its own.
pub(crate) fn html_page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\
         <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )
}

/// A table with a head; cells are escaped here.
pub(crate) fn html_table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells = cells
            .iter()
            .map(|c| format!("<{tag}>{}</{tag}>", escape(c)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let head = row(&head.map(str::to_owned), "th");
    let rows = rows.into_iter().map(|cells| row(&cells, "td"));
    format!("<table>\n{head}{}</table>\n", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_placed_between_the_axes_and_names_stay_text() {
        let chart = Chart {
            title: "a < b".into(),
            y: Axis {
                label: "share".into(),
                range: Some((0.0, 1.0)),
            },
            series: vec![Series {
                name: "<x>".into(),
                points: vec![(0.0, 0.0), (10.0, 1.0)],
                ..Series::default()
            }],
            ..Chart::default()
        };
        let svg = chart.to_svg();
        assert!(svg.contains("points=\"64.0,256.0 490.0,32.0\""), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("&lt;x&gt;") && !svg.contains("<x>"));
    }

    #[test]
    fn a_page_asks_nobody_for_anything() {
        let page = html_page(
            "t",
            &html_table(["a", "b"], [["<1>".to_owned(), "2".to_owned()]]),
        );
        assert!(page.contains("<td>&lt;1&gt;</td>"));
        assert!(!page.contains("http") && !page.contains("<script"));
    }

    #[test]
    fn numbers_are_short() {
        let all = [0.25, 1.0, 12.5, 150.0, 20_000.0, 1_500_000.0].map(format_number);
        assert_eq!(all, ["0.25", "1", "12.5", "150", "20k", "1.5M"]);
    }
}
