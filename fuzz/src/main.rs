//! One reader under libFuzzer: the format that `COMPACT_FUZZ_FORMAT` names gets every input, and a promise that is broken
//! ends the process, which is how libFuzzer learns of it.

#![no_main]

use std::sync::OnceLock;

use compact_eval::fuzz::exercise;
use compact_formats::Format;
use libfuzzer_sys::fuzz_target;

/// The format that is fuzzed.
fn format() -> Format {
    static FORMAT: OnceLock<Format> = OnceLock::new();
    *FORMAT.get_or_init(|| {
        let name = std::env::var("COMPACT_FUZZ_FORMAT").expect("COMPACT_FUZZ_FORMAT names a format");
        name.parse().expect("a format")
    })
}

fuzz_target!(|input: &[u8]| {
    if let Err(promise) = exercise(format(), input) {
        panic!("{promise}");
    }
});
