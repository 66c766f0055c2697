//! A share as a bar of fixed width.

use super::Charset;

/// The partial blocks, an eighth to seven eighths.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of `width` columns, of which `share` is filled. Anything above zero shows.
pub(crate) fn bar(share: f64, width: usize, charset: Charset) -> String {
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    match charset {
        Charset::Unicode => blocks(share, width),
        Charset::Ascii => {
            let full = filled(share, width);
            "#".repeat(full) + &".".repeat(width - full)
        }
    }
}

fn filled(share: f64, width: usize) -> usize {
    let full = (share * width as f64).round() as usize;
    full.clamp(usize::from(share > 0.0), width)
}

fn blocks(share: f64, width: usize) -> String {
    let eighths = filled(share, width * 8);
    let mut out = "█".repeat(eighths / 8);
    let mut used = eighths / 8;
    if let Some(part) = (eighths % 8).checked_sub(1).and_then(|i| EIGHTHS.get(i)) {
        out.push(*part);
        used += 1;
    }
    out + &"░".repeat(width - used)
}
