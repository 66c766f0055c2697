//! Cutting a long conversation into stretches that fit one request each.
//!
//! Entries stay whole where they can; one that is larger than a stretch is cut at the ends of
//! lines, and a line that is larger by itself anywhere. Nothing is left out.

use super::{ChunkPiece, SourceChunk};
use crate::token::{Estimator, Units};

/// The texts in order, packed into stretches of at most `most`.
pub(super) fn cut_chunks(
    texts: impl Iterator<Item = String>,
    most: Units,
    estimator: &dyn Estimator,
) -> Vec<SourceChunk> {
    let mut packing = ChunkPacker {
        done: Vec::new(),
        open: empty(),
        most,
    };
    for (source, text) in texts.enumerate() {
        let cost = estimator.count_units(&text);
        if cost <= most {
            packing.add(&text, cost);
            packing.open.pieces.push(ChunkPiece::Whole(source));
        } else {
            for piece in pieces(&text, most, estimator) {
                packing.add(piece, estimator.count_units(piece));
                let part = ChunkPiece::Part(source, piece.to_owned());
                packing.open.pieces.push(part);
            }
        }
        packing.open.entries += 1;
    }
    packing.finish()
}

struct ChunkPacker {
    done: Vec<SourceChunk>,
    open: SourceChunk,
    most: Units,
}

impl ChunkPacker {
    fn add(&mut self, text: &str, cost: Units) {
        if self.open.cost + cost > self.most && !self.open.text.is_empty() {
            self.done.push(std::mem::replace(&mut self.open, empty()));
        }
        self.open.text.push_str(text);
        self.open.cost += cost;
    }

    fn finish(mut self) -> Vec<SourceChunk> {
        if !self.open.text.is_empty() {
            self.done.push(self.open);
        } else if let Some(last) = self.done.last_mut() {
            last.entries += self.open.entries;
            last.pieces.append(&mut self.open.pieces);
        }
        self.done
    }
}

fn empty() -> SourceChunk {
    SourceChunk {
        text: String::new(),
        pieces: Vec::new(),
        entries: 0,
        cost: Units(0),
    }
}

/// A long text in pieces of at most `most`, cut at the ends of lines where that is possible.
fn pieces<'t>(text: &'t str, most: Units, estimator: &dyn Estimator) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest
            .split_at_checked(reach(rest, most, estimator))
            .unwrap_or((rest, ""));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// How many bytes of a text fit: to the end of a line if one ends in the second half.
fn reach(text: &str, most: Units, estimator: &dyn Estimator) -> usize {
    let mut end = text.len();
    loop {
        let cost = text
            .get(..end)
            .map_or(Units(0), |t| estimator.count_units(t));
        if cost <= most {
            break;
        }
        // Never more than nine tenths, so that it ends; at least one character, so that it goes on.
        let share = (most.0 as f64 / cost.0.max(1) as f64).min(0.9);
        let next = text.floor_char_boundary((end as f64 * share) as usize);
        if next == 0 {
            return text.chars().next().map_or(text.len(), char::len_utf8);
        }
        end = next;
    }
    let line = text.get(..end).and_then(|t| t.rfind('\n')).map(|at| at + 1);
    match line {
        Some(line) if end < text.len() && line > end / 2 => line,
        _ => end,
    }
}
