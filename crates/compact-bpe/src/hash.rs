// The hash of a token's bytes. The build script lays the tables out by it, so it is read by both.

/// An odd constant whose bits are well mixed: 2⁶⁴ divided by the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash of which every bit depends on every byte.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let start = (bytes.len() as u64).wrapping_mul(MIX);
    let hash = words.iter().fold(start, |hash, word| {
        mix_word(hash, u64::from_le_bytes(*word))
    });
    let last = rest
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte));
    mix_word(hash, last)
}

/// Bits of a slot for four bytes that tokens begin with: a quarter of the slots are taken.
pub(crate) const START_BITS: u32 = 18;

/// The slot of four bytes that a token may begin with.
pub(crate) fn start_slot(start: [u8; 4]) -> usize {
    let product = u64::from(u32::from_le_bytes(start)).wrapping_mul(MIX);
    (product >> (u64::BITS - START_BITS)) as usize
}

fn mix_word(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word ^ MIX) * u128::from(MIX | 1);
    (product as u64) ^ ((product >> 64) as u64)
}
