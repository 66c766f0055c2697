//! Models that think before they answer: OpenAI's refuse a temperature and a seed, count their thoughts as
//! output, and name the limit of a chat answer differently. A server that speaks up about any of this is
//! heard in `http` too, for models that nobody knows here.

use compact_core::token::Tokens;

/// How the names of these models begin.
const FAMILIES: [&str; 4] = ["gpt-5", "o1", "o3", "o4"];

/// Models of these families that answer at once.
const EXCEPT: &str = "gpt-5-chat";

/// What they may think beside their answer, with the least effort that all of them accept.
const THOUGHTS: Tokens = Tokens(4_096);
pub(super) const EFFORT: &str = "low";

/// Returns whether a model thinks first; a vendor's prefix (`openai/o3`) and a date change nothing.
pub(super) fn thinks_first(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_of = |family: &str| match name.strip_prefix(family) {
        Some(rest) => rest.is_empty() || rest.starts_with(['-', '.']),
        None => false,
    };
    FAMILIES.iter().any(|family| is_of(family)) && !name.starts_with(EXCEPT)
}

/// Returns the limit of an answer in the tokens that the model counts: its thoughts are among them.
pub(super) fn answer_limit(limit: Tokens, model: &str) -> u64 {
    match thinks_first(model) {
        true => (limit + THOUGHTS).0,
        false => limit.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_by_their_names() {
        for model in [
            "gpt-5",
            "gpt-5.1",
            "gpt-5-mini-2025-08-07",
            "openai/o3",
            "o4-mini",
        ] {
            assert!(thinks_first(model), "{model}");
        }
        for model in [
            "gpt-4o",
            "gpt-4.1",
            "gpt-5-chat-latest",
            "gpt-50",
            "o200k",
            "olmo-3",
            "m",
        ] {
            assert!(!thinks_first(model), "{model}");
        }
    }
}
