//! How an input continues the one before it, as databases spell it.

use compact_runtime::port::catalog::Continues;

pub(super) fn text(continues: Continues) -> &'static str {
    match continues {
        Continues::Fresh => "fresh",
        Continues::View => "view",
        Continues::Transcript => "transcript",
    }
}

pub(super) fn named(name: &str) -> Continues {
    match name {
        "view" => Continues::View,
        "transcript" => Continues::Transcript,
        _ => Continues::Fresh,
    }
}
