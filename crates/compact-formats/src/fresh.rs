//! Names and places for what the engine writes itself: the same input always gives the same ones.

/// Returns a uuid (version 8) that depends only on the name and the index.
pub(crate) fn stable_uuid(name: &str, index: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(&(index as u64).to_le_bytes());
    let hex = hasher.finalize().to_hex();
    let part = |range| hex.get(range).unwrap_or_default();
    format!(
        "{}-{}-8{}-8{}-{}",
        part(0..8),
        part(8..12),
        part(13..16),
        part(17..20),
        part(20..32)
    )
}

/// A moment, as JSON, for where no other is known: nothing here reads a clock.
pub(crate) const EPOCH: &str = "\"1970-01-01T00:00:00.000Z\"";
