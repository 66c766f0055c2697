//! How an input continues the one before it, as databases spell it.

use compact_runtime::port::catalog::InputRelation;

pub(super) fn to_name(continues: InputRelation) -> &'static str {
    match continues {
        InputRelation::Fresh => "fresh",
        InputRelation::View => "view",
        InputRelation::Transcript => "transcript",
    }
}

pub(super) fn from_name(name: &str) -> InputRelation {
    match name {
        "view" => InputRelation::View,
        "transcript" => InputRelation::Transcript,
        _ => InputRelation::Fresh,
    }
}
