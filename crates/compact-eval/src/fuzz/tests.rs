//! The fuzzer finds what is there to be found, and the same each time.

use std::time::Duration;

use compact_formats::Format;

use super::mutate::Mutator;
use super::{attempt, json, run};
use crate::random::Random;

const SEED: &[u8] =
    b"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a \\\" b\"}]}]";

#[test]
fn values_and_keys_are_found() {
    let spans = json::values(b"{\"a\": [1, \"x\\\"y\", null]}");
    let texts: Vec<&[u8]> = spans
        .into_iter()
        .filter_map(|span| b"{\"a\": [1, \"x\\\"y\", null]}".get(span))
        .collect();
    assert_eq!(
        texts,
        [
            &b"{\"a\": [1, \"x\\\"y\", null]}"[..],
            b"\"a\"",
            b"[1, \"x\\\"y\", null]",
            b"1",
            b"\"x\\\"y\"",
            b"null"
        ]
    );
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let made = |seed| {
        let mut mutator = Mutator::new(Random::new(seed));
        let pool = [SEED.to_vec()];
        (0..50).map(|_| mutator.mutate(&pool)).collect::<Vec<_>>()
    };
    assert_eq!(made(7), made(7));
    assert_ne!(made(7), made(8));
}

#[test]
fn inputs_are_tried_and_tell_apart() {
    let mut tried = 0;
    let mut count = |_: &[u8]| tried += 1;
    let run = run(
        Format::Messages,
        &[SEED.to_vec()],
        1,
        Duration::from_millis(200),
        &mut count,
    );
    assert_eq!(run.failure, None);
    assert!(run.outcomes > 1 && run.inputs == tried);
    assert_ne!(
        attempt(Format::Messages, SEED),
        attempt(Format::Messages, b"[7]")
    );
}
