//! A small generator of pseudo-random numbers, the same on every platform and in every version.
//!
//! SplitMix64: enough to make sessions varied and reproducible, and nothing to keep secrets with. The examples and all
//! published figures are drawn from its seeds, so it may not change; `fastrand`, which serves where numbers need not
//! come again, gave its seeds other numbers in 2.1.

/// A stream of numbers that its seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Returns the stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high.saturating_sub(low) + 1)
    }

    /// Returns a place in a list of `len` items; 0 when it is empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        (self.next() % (len.max(1) as u64)) as usize
    }

    /// Returns one of the items.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// Returns true in so many of a hundred cases.
    pub(crate) fn roll_percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }

    /// Returns so many characters of an alphabet.
    pub(crate) fn letters(&mut self, alphabet: &str, len: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..len)
            .filter_map(|_| self.pick(&letters).copied())
            .collect()
    }

    /// Returns so many hexadecimal digits.
    pub(crate) fn hex(&mut self, len: usize) -> String {
        self.letters("0123456789abcdef", len)
    }

    /// Returns a version 4 UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let variant = self.letters("89ab", 1);
        format!(
            "{}-{}-4{}-{variant}{}-{}",
            self.hex(8),
            self.hex(4),
            self.hex(3),
            self.hex(3),
            self.hex(12)
        )
    }

    /// Returns so many letters and digits, as in a provider's ids.
    pub(crate) fn base62(&mut self, len: usize) -> String {
        self.letters(
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            len,
        )
    }
}
