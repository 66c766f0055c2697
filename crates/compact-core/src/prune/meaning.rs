//! What units are about, as vectors: the likeness behind `semantic` pruning.
//!
//! The default needs no model: words hashed into a fixed number of slots, the rare ones weighing
//! more. A caller that has embeddings passes its own vectors; only their angles matter here.

use std::hash::BuildHasher;

use crate::message::{Block, Conversation};
use crate::outline::Outline;

/// What one unit is about. Vectors of one session have the same length.
pub type MeaningVector = Vec<f32>;

/// Slots that words are hashed into.
const SLOTS: usize = 256;

/// Bytes of a unit that are looked at: a long log says what it is about at its beginning.
const LOOK: usize = 8192;

/// Units whose angle has at least this cosine say the same.
const ALIKE: f32 = 0.8;

/// One vector for each unit, from its words alone.
pub(crate) fn vectors(conversation: &Conversation, outline: &Outline) -> Vec<MeaningVector> {
    let mut vectors: Vec<MeaningVector> = outline
        .units
        .iter()
        .map(|unit| {
            let mut vector = vec![0.0; SLOTS];
            let entries = conversation.entries.get(unit.entries.clone());
            let blocks = entries.unwrap_or_default().iter().flat_map(|e| &e.blocks);
            for text in blocks.flat_map(Block::text_parts) {
                count_words(text, &mut vector);
            }
            vector
        })
        .collect();
    weigh(&mut vectors);
    vectors
}

fn count_words(text: &str, vector: &mut [f32]) {
    let hasher = foldhash::fast::FixedState::default();
    let end = text.floor_char_boundary(LOOK);
    let words = text
        .get(..end)
        .unwrap_or_default()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| w.len() > 1);
    for word in words {
        let hash = hasher.hash_one(word);
        if let Some(slot) = vector.get_mut((hash % SLOTS as u64) as usize) {
            *slot += 1.0;
        }
    }
}

/// Counts become weights: many mentions count little more than one, common words nearly nothing.
fn weigh(vectors: &mut [MeaningVector]) {
    let mut spread = vec![0.0_f32; SLOTS];
    for vector in vectors.iter() {
        for (units, count) in spread.iter_mut().zip(vector) {
            *units += f32::from(u8::from(*count > 0.0));
        }
    }
    let all = vectors.len() as f32;
    for vector in vectors {
        for (weight, units) in vector.iter_mut().zip(&spread) {
            *weight = weight.ln_1p() * (1.0 + all / (1.0 + units)).ln();
        }
    }
}

/// Of each cluster of like units the one that comes first in `order`; at most `limit`.
pub(super) fn representatives(
    vectors: &[MeaningVector],
    order: impl Iterator<Item = usize>,
    limit: usize,
) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for unit in order {
        if kept.len() == limit {
            break;
        }
        let like = |other: &usize| cosine(vectors.get(unit), vectors.get(*other)) >= ALIKE;
        if !kept.iter().any(like) {
            kept.push(unit);
        }
    }
    kept
}

fn cosine(a: Option<&MeaningVector>, b: Option<&MeaningVector>) -> f32 {
    let (Some(a), Some(b)) = (a, b) else {
        return 0.0;
    };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 {
        dot(a, b) / length
    } else {
        0.0
    }
}
