//! The fields of a call as it reads: `key: value` at the start of a line, or right after the tool's name.
//!
//! They are found once, in one walk over the lines, and then asked for by name as often as it takes.

/// A call as it reads, and where its fields begin.
pub(super) struct CallFields<'t> {
    /// The tool's name and the arguments.
    pub(super) text: &'t str,
    /// The names of fields, each with where its value begins.
    fields: Vec<(&'t str, usize)>,
}

/// The longest name of a field that is asked for.
const LONGEST_KEY: usize = 16;

impl<'t> CallFields<'t> {
    /// Reads the fields of a call.
    pub(super) fn from_call(text: &'t str) -> CallFields<'t> {
        let mut fields = Vec::new();
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        for start in after_name(text).into_iter().chain(breaks) {
            fields.extend(read_key(text, start));
        }
        CallFields { text, fields }
    }

    /// The value of the first of `keys` that the call has; a list's items follow on their own lines.
    pub(super) fn value(&self, keys: &[&str]) -> Option<&'t str> {
        let begins = keys.iter().find_map(|key| {
            let mut fields = self.fields.iter();
            fields.find(|(name, _)| name == key)
        });
        let value = self.text.get(begins?.1..)?;
        Some(value.trim_start_matches('\n'))
    }
}

/// Where the arguments begin that stand on the line of the tool's name.
fn after_name(text: &str) -> Option<usize> {
    let (name, _) = text.split_once([' ', '\n'])?;
    let arguments = text.get(name.len()..)?.trim_start();
    let start = text.len() - arguments.len();
    text.get(..start)?.ends_with(' ').then_some(start)
}

/// The name of the field that begins at a byte, and where its value does.
fn read_key(text: &str, start: usize) -> Option<(&str, usize)> {
    let line = text.as_bytes().get(start..)?;
    let is_part = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_';
    let length = line
        .iter()
        .take(LONGEST_KEY + 1)
        .take_while(is_part)
        .count();
    let begins = start + length + 2;
    let is_key = length > 0 && text.get(start + length..begins) == Some(": ");
    is_key.then(|| Some((text.get(start..start + length)?, begins)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stands_at_the_start_of_a_line_or_behind_the_tools_name() {
        let rows = [
            ("Bash command: ls -a\ncwd: /", Some("ls -a\ncwd: /")),
            ("Bash  command: ls", Some("ls")),
            ("Bash\n command: ls", Some("ls")),
            ("Bash timeout: 5\ncommand: \n\nls", Some("ls")),
            ("Bash cmd: ls\ncommand: pwd", Some("pwd")),
            ("Bash run command: ls", None),
            ("Bash text: one\n  command: ls", None),
            ("command: ls", None),
            ("Bash\ncommand:ls", None),
            ("Bash subcommand: ls", None),
        ];
        let found = rows.map(|(call, _)| CallFields::from_call(call).value(&["command"]));
        assert_eq!(found, rows.map(|(_, value)| value));
    }

    #[test]
    fn the_first_of_the_keys_is_asked_for_first() {
        let call = CallFields::from_call("Edit path: b.rs\nfile_path: a.rs");
        assert_eq!(call.value(&["file_path", "path"]), Some("a.rs"));
        assert_eq!(call.value(&["path"]), Some("b.rs\nfile_path: a.rs"));
    }
}
