//! A comparison as one picture: both versions as strips in one scale, from the first entry to the last.

use std::fmt::Write;

use compact::token::Tokens;

use super::page::escape_html;
use super::{EntryFate, SessionDiff};
use crate::report::number::group_digits;

/// The width of the strips, and where they begin.
const WIDTH: f64 = 680.0;
const LEFT: f64 = 20.0;

/// Colours that are read on light and dark pages, a word for each.
const LEGEND: [(EntryFate, &str, &str); 4] = [
    (EntryFate::Kept, "#2da44e", "kept, byte for byte"),
    (
        EntryFate::Cut,
        "#bf8700",
        "cut, with a pointer to the whole",
    ),
    (EntryFate::New, "#0969da", "the summary"),
    (EntryFate::Removed, "#8c959f", "left to the archive"),
];

/// Draws the picture.
pub(super) fn svg(comparison: &SessionDiff) -> String {
    let [before, after] = comparison.names.each_ref().map(|name| escape_html(name));
    let (old, new) = (comparison.before, comparison.after);
    let title = format!(
        "{before} compacted: {} tokens before, {} after",
        group_digits(old.0),
        group_digits(new.0)
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 190\" role=\"img\" \
         aria-label=\"{title}\" font-family=\"system-ui,sans-serif\" font-size=\"13\" fill=\"#57606a\">\n\
         <title>{title}</title>\n"
    );
    let scale = WIDTH / old.0.max(new.0).max(1) as f64;
    let rows = [(before, old, 36.0), (after, new, 106.0)];
    for ((name, tokens, top), fates) in rows.into_iter().zip(&comparison.fates) {
        let label = format!("{name}: {} tokens", group_digits(tokens.0));
        let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\">{label}</text>", top - 8.0);
        push_strip(&mut out, fates, top, scale);
    }
    let mut x = LEFT;
    for (_, colour, words) in LEGEND {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"165\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"174\" font-size=\"11\">{words}</text>",
            x + 14.0
        );
        x += 30.0 + 6.0 * words.len() as f64;
    }
    out + "</svg>\n"
}

/// One version: neighbours of one fate are one rectangle.
fn push_strip(out: &mut String, fates: &[(EntryFate, Tokens)], top: f64, scale: f64) {
    let mut x = LEFT;
    for run in fates.chunk_by(|a, b| a.0 == b.0) {
        let tokens: u64 = run.iter().map(|(_, tokens)| tokens.0).sum();
        let width = tokens as f64 * scale;
        let fate = run.first().map(|(fate, _)| *fate);
        let colour = LEGEND.iter().find(|(named, ..)| Some(*named) == fate);
        let colour = colour.map_or("none", |(_, colour, _)| *colour);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"34\" fill=\"{colour}\"/>"
        );
        x += width;
    }
}
