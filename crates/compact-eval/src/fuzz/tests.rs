//! The fuzzer finds what is there to be found, and the same each time.

use std::time::Duration;

use compact_formats::Format;
use serde_json::Value;
use serde_json::value::RawValue;

use super::mutate::Mutator;
use super::{FuzzEffort, exercise, fuzz_format, json, search_for_failure, try_input};
use crate::random::Random;

const SEED: &[u8] =
    b"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a \\\" b\"}]}]";

const OTHER: &[u8] = b"{\"role\":\"assistant\",\"calls\":[{\"id\":\"c\",\"n\":1}]}\n\
                       {\"role\":\"tool\",\"answers\":\"c\",\"failed\":true}\n";

fn pool() -> [Vec<u8>; 2] {
    [SEED.to_vec(), OTHER.to_vec()]
}

#[test]
fn values_and_keys_are_found() {
    let text = b"{\"a\": [1, \"x\\\"y\", null]}";
    let places = json::find_spans(text);
    let values: Vec<&[u8]> = places
        .values
        .iter()
        .map(|v| &text[v.span.clone()])
        .collect();
    assert_eq!(
        values,
        [
            &text[..],
            b"[1, \"x\\\"y\", null]",
            b"1",
            b"\"x\\\"y\"",
            b"null"
        ]
    );
    let keys: Vec<&[u8]> = places.keys.iter().map(|key| &text[key.clone()]).collect();
    assert_eq!(keys, [b"\"a\""]);
    assert_eq!(places.values[1].member_span(), 1..text.len() - 1);
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let made = |seed| {
        let mut mutator = Mutator::new(Random::new(seed));
        (0..50).map(|_| mutator.mutate(&pool())).collect::<Vec<_>>()
    };
    assert_eq!(made(7), made(7));
    assert_ne!(made(7), made(8));
}

fn is_json(input: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(input).is_ok()
}

fn has(input: &[u8], part: &str) -> bool {
    input.windows(part.len()).any(|at| at == part.as_bytes())
}

/// The elements of a list that all are JSON.
fn elements(input: &[u8]) -> Vec<Value> {
    serde_json::from_slice(input).unwrap_or_default()
}

/// What readers stumble over, and how to tell that an input has it.
type Trouble = (&'static str, fn(&[u8]) -> bool);

const TROUBLES: &[Trouble] = &[
    ("a text of many thousand characters", |input| {
        let is_long = |element: &Value| element.to_string().len() > 10_000;
        elements(input).iter().any(is_long)
    }),
    ("half a surrogate pair", |input| {
        is_json(input) && has(input, "\\udc00b")
    }),
    ("a number beyond 64 bits", |input| {
        is_json(input) && has(input, "18446744073709551616")
    }),
    ("lists that are nested deep", |input| {
        is_json(input) && has(input, &"[".repeat(1_000))
    }),
    ("objects that are nested deep", |input| {
        is_json(input) && has(input, &"{\"a\":".repeat(1_000))
    }),
    ("a member twice", |input| {
        is_json(input) && has(input, "{\"role\":\"user\",\"role\":\"user\"")
    }),
    ("a member that is gone", |input| {
        is_json(input) && has(input, "[{\"content\":[{\"type\"")
    }),
    ("a member under another's name", |input| {
        is_json(input) && has(input, "[{\"content\":\"user\",")
    }),
    ("a member of another kind of message", |input| {
        is_json(input) && has(input, "\"answers\":[{\"type\"")
    }),
    ("values in each other's places", |input| {
        is_json(input) && has(input, "{\"type\":\"a \\\" b\",\"text\":\"text\"}")
    }),
    ("a hundred elements", |input| elements(input).len() > 100),
    ("lines in another order", |input| {
        has(input, "true}\n{\"role\":\"assistant\",\"calls\":[{\"id\"")
    }),
    ("lines of two inputs", |input| {
        has(input, "\n[{\"role\":\"user\",\"content\":[{")
    }),
    (
        "bytes that are no text in a line that is not the last",
        |input| {
            let mut lines = input.split(|byte| *byte == b'\n').rev().skip(2);
            lines.any(|line| std::str::from_utf8(line).is_err())
        },
    ),
    ("a torn end", |input| input.ends_with(b"\"tool\",\"answ")),
];

#[test]
fn every_kind_of_trouble_is_made() {
    let mut mutator = Mutator::new(Random::new(1));
    let mut missing: Vec<_> = TROUBLES.iter().collect();
    for _ in 0..60_000 {
        let input = mutator.mutate(&pool());
        missing.retain(|(_, is_made)| !is_made(&input));
        if missing.is_empty() {
            return;
        }
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    panic!("never made: {names:?}");
}

/// A reader that fails only where three oddities meet.
fn planted(input: &[u8]) -> Result<String, String> {
    let list = elements(input);
    let [first, second, ..] = list.as_slice() else {
        return Ok(format!("{} elements", list.len()));
    };
    let kind = |value: &Value| match value {
        Value::Null => "nothing",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        _ => "other",
    };
    let seen = (kind(&first["role"]), kind(&second["content"]));
    assert_ne!(seen, ("nothing", "text"), "planted");
    Ok(format!("two elements, {seen:?}"))
}

#[test]
fn a_planted_fault_is_found_step_by_step() {
    let effort = FuzzEffort::Time(Duration::from_secs(60));
    let run = search_for_failure(&planted, &pool(), 3, effort, &mut |_| {});
    let (input, promise) = run.failure.unwrap();
    assert!(promise.contains("planted"), "{promise}");
    assert!(elements(&input).len() > 1);
}

#[test]
fn inputs_do_not_grow_from_step_to_step() {
    let mut sizes = Vec::new();
    let mut note = |input: &[u8]| sizes.push(input.len());
    // Every input has an outcome of its own, so that all of them may join the pool.
    let target = |input: &[u8]| Ok(String::from_utf8_lossy(input).into_owned());
    let run = search_for_failure(&target, &pool(), 1, FuzzEffort::Inputs(4_000), &mut note);
    assert_eq!(run.failure, None);
    let late = &mut sizes[3_000..];
    late.sort_unstable();
    assert!(late[500] < 4_096, "half have {} bytes and more", late[500]);
}

#[test]
fn inputs_are_tried_and_tell_apart() {
    let mut tried = 0;
    let mut count = |_: &[u8]| tried += 1;
    let run = fuzz_format(
        Format::Messages,
        &[SEED.to_vec()],
        1,
        FuzzEffort::Inputs(40),
        &mut count,
    );
    assert_eq!(run.failure, None);
    assert_eq!((run.inputs, tried), (40, 40));
    assert!(run.outcomes > 1);
    let messages = |input: &[u8]| exercise(Format::Messages, input);
    assert_ne!(try_input(&messages, SEED), try_input(&messages, b"[7]"));
}
