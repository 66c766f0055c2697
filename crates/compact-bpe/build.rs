//! Lays out the tables that the crate reads: the vocabularies as hash tables, and kinds of characters.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a build stops here"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use regex_syntax::hir::{Class, HirKind};

#[path = "src/hash.rs"]
mod hash;

/// Bits of a slot that hold a rank plus one, and of a row that hold a rank, as in `src/vocabulary.rs`.
const RANK_BITS: u32 = 18;

/// The numbers of `src/class.rs`, with the characters that have them. Later rows win.
const CLASSES: [(u8, &str); 7] = [
    (2, r"\s"),
    (1, r"[\r\n]"),
    (3, r"[\p{Lu}\p{Lt}]"),
    (4, r"\p{Ll}"),
    (5, r"[\p{Lm}\p{Lo}]"),
    (6, r"\p{M}"),
    (7, r"\p{N}"),
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for name in ["o200k", "cl100k"] {
        let data = format!("data/{name}.vocabulary");
        println!("cargo::rerun-if-changed={data}");
        let data = fs::read(&data).expect("the vocabulary is part of the crate");
        write_vocabulary(&out, name, &data);
    }
    println!("cargo::rerun-if-changed=src/hash.rs");
    write_classes(&out);
}

/// Writes a vocabulary, given as each token's length and bytes in the order of ranks.
fn write_vocabulary(out: &Path, name: &str, data: &[u8]) {
    let (mut tokens, mut rest) = (Vec::new(), data);
    while let Some((length, after)) = rest.split_first() {
        let (token, after) = after.split_at(usize::from(*length));
        tokens.push(token);
        rest = after;
    }
    assert!(
        tokens.len() < 1 << RANK_BITS,
        "a rank needs more bits than a slot has"
    );
    write_numbers(&out.join(format!("{name}.slots")), &slots_of(&tokens));
    fs::write(out.join(format!("{name}.tokens")), rows_of(&tokens)).expect("OUT_DIR is writable");
    fs::write(out.join(format!("{name}.longest")), longest_of(&tokens))
        .expect("OUT_DIR is writable");
    fs::write(
        out.join(format!("{name}.far")),
        longest_by_four_bytes(&tokens),
    )
    .expect("OUT_DIR is writable");
    fs::write(out.join(format!("{name}.bytes")), tokens.concat()).expect("OUT_DIR is writable");
}

/// The length of the longest token for each two first bytes; at least that of one byte.
fn longest_of(tokens: &[&[u8]]) -> Vec<u8> {
    let mut longest = vec![1u8; 1 << 16];
    for token in tokens {
        if let Some(start) = token.first_chunk::<2>() {
            let known = &mut longest[usize::from(u16::from_le_bytes(*start))];
            *known = (*known).max(u8::try_from(token.len()).expect("a token of at most 255 bytes"));
        }
    }
    longest
}

/// The length of the longest token for each slot of four first bytes; 0 where there is none of so many.
fn longest_by_four_bytes(tokens: &[&[u8]]) -> Vec<u8> {
    let mut longest = vec![0u8; 1 << hash::START_BITS];
    for token in tokens {
        if let Some(start) = token.first_chunk::<4>() {
            let known = &mut longest[hash::start_slot(*start)];
            *known = (*known).max(u8::try_from(token.len()).expect("a token of at most 255 bytes"));
        }
    }
    longest
}

/// A number for each token: the ranks of the two that it is merged from last (a byte has itself for both), and above
/// them where its bytes begin; then one that says where the last ends.
fn rows_of(tokens: &[&[u8]]) -> Vec<u8> {
    let ranks: HashMap<&[u8], u32> = tokens.iter().copied().zip(0..).collect();
    let (mut rows, mut offset) = (Vec::new(), 0u64);
    for (token, rank) in tokens.iter().zip(0..) {
        let half = |bytes: &[u8]| ranks.get(bytes).copied().unwrap_or(rank);
        let [left, right] = match middle_of(token, rank, &ranks) {
            Some(middle) => [half(&token[..middle]), half(&token[middle..])],
            None => [rank, rank],
        };
        let row = u64::from(left) | u64::from(right) << RANK_BITS | offset << (2 * RANK_BITS);
        rows.extend(row.to_le_bytes());
        offset += token.len() as u64;
    }
    assert!(
        offset < 1 << (u64::BITS - 2 * RANK_BITS),
        "an offset needs more bits than a row has"
    );
    rows.extend((offset << (2 * RANK_BITS)).to_le_bytes());
    rows
}

/// Where a token is whole but for its last merge.
fn middle_of(token: &[u8], rank: u32, ranks: &HashMap<&[u8], u32>) -> Option<usize> {
    let mut bounds: Vec<usize> = (0..=token.len()).collect();
    while bounds.len() > 3 {
        let unions = bounds.windows(3).enumerate();
        let unions = unions.filter_map(|(at, part)| {
            let union = ranks.get(&token[part[0]..part[2]]).copied();
            union.filter(|union| *union < rank).map(|union| (union, at))
        });
        let (_, at) = unions.min()?;
        bounds.remove(at + 1);
    }
    (bounds.len() == 3).then(|| bounds[1])
}

/// A table that is at most half full.
fn slots_of(tokens: &[&[u8]]) -> Vec<u32> {
    let size = (tokens.len() * 2).next_power_of_two();
    let mut slots = vec![0u32; size];
    for (rank, token) in tokens.iter().enumerate() {
        let hash = hash::hash_bytes(token);
        let mut at = hash as usize & (size - 1);
        while slots[at] != 0 {
            at = (at + 1) & (size - 1);
        }
        slots[at] = ((hash >> 50) as u32) << RANK_BITS | (rank as u32 + 1);
    }
    slots
}

fn write_numbers(path: &Path, numbers: &[u32]) {
    let bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    fs::write(path, bytes).expect("OUT_DIR is writable");
}

/// Writes the kinds of all characters in blocks of 256, equal blocks once, and those of ASCII apart.
fn write_classes(out: &Path) {
    let mut kinds = vec![0u8; 0x11_0000];
    for (number, pattern) in CLASSES {
        let hir = regex_syntax::parse(pattern).expect("a pattern of ours");
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            panic!("{pattern} is no class of characters");
        };
        for range in class.ranges() {
            kinds[range.start() as usize..=range.end() as usize].fill(number);
        }
    }
    let ascii = format!("static ASCII: [u8; 128] = {:?};\n", &kinds[..128]);
    fs::write(out.join("ascii.rs"), ascii).expect("OUT_DIR is writable");
    let (mut blocks, mut distinct) = (Vec::new(), Vec::<&[u8]>::new());
    for block in kinds.chunks(256) {
        let at = distinct
            .iter()
            .position(|known| *known == block)
            .unwrap_or_else(|| {
                distinct.push(block);
                distinct.len() - 1
            });
        blocks.push(u8::try_from(at).expect("at most 256 distinct blocks"));
    }
    fs::write(out.join("blocks"), blocks).expect("OUT_DIR is writable");
    fs::write(out.join("kinds"), distinct.concat()).expect("OUT_DIR is writable");
}
