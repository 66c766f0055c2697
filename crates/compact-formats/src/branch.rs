//! Where a session that is read piece by piece leaves the branch that was read before.
//!
//! A person who rewinds a session of Claude Code goes on from an earlier line of the same file; what
//! was said since then is in no context. A piece shows that only by a parent that is not the last line
//! before it. Sessions of other agents have one branch.

use std::collections::HashSet;

use crate::Format;
use crate::claude_code;

/// Returns the line that the next prompt hangs on if nobody rewinds.
pub fn leaf(format: Format, piece: &[u8]) -> Option<String> {
    match format {
        Format::ClaudeCode => claude_code::read_links(piece)
            .filter_map(|link| link.id)
            .last(),
        _ => None,
    }
}

/// Returns whether a prompt in a piece hangs on something other than `leaf` and the piece itself, when it
/// goes back to `leaf` after others, or when the piece repeats what was said before it.
pub fn has_rewind(format: Format, leaf: Option<&str>, piece: &[u8]) -> bool {
    if format != Format::ClaudeCode {
        return false;
    }
    let mut known: HashSet<String> = leaf.map(str::to_owned).into_iter().collect();
    for link in claude_code::read_links(piece) {
        let is_known = |line: &String| known.contains(line);
        let is_within = |line: &String| is_known(line) && Some(line.as_str()) != leaf;
        let goes_back = known.len() > 1 && link.prompts_after.as_deref() == leaf && leaf.is_some();
        let goes_on = link.prompts_after.iter().all(is_known) && !goes_back;
        if !goes_on || !link.repeats.iter().all(is_within) {
            return true;
        }
        known.extend(link.id);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, parent: &str, role: &str) -> String {
        let parent = match parent {
            "" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        format!(
            r#"{{"type":"{role}","uuid":"{id}","parentUuid":{parent},"message":{{"role":"{role}","content":"words"}}}}"#
        ) + "\n"
    }

    #[test]
    fn a_prompt_behind_the_last_line_goes_on_and_any_other_rewinds() {
        let read = line("a", "", "user") + &line("b", "a", "assistant");
        let leaf = leaf(Format::ClaudeCode, read.as_bytes());
        assert_eq!(leaf.as_deref(), Some("b"));
        let rewinds =
            |piece: &str| has_rewind(Format::ClaudeCode, leaf.as_deref(), piece.as_bytes());
        assert!(!rewinds(
            &(line("c", "b", "user") + &line("d", "c", "assistant"))
        ));
        assert!(!rewinds(&line("c", "", "user")), "a boundary starts anew");
        assert!(!rewinds("{\"type\":\"mode\"}\nnot json\n"));
        assert!(rewinds(&line("c", "a", "user")));
        let repeats =
            line("c", "b", "assistant").replace("{\"type\"", "{\"compactedFrom\":\"a\",\"type\"");
        assert!(rewinds(&repeats), "said before the piece");
        let twice = line("c", "b", "user") + &line("d", "c", "assistant");
        assert!(rewinds(&(twice.clone() + &line("e", "a", "user"))));
        assert!(rewinds(&(twice.clone() + &line("e", "b", "user"))));
        assert!(
            !rewinds(&(twice + &line("e", "c", "user"))),
            "within the piece"
        );
    }
}
