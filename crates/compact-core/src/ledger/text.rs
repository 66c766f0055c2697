//! Small cuts of text: sentences, and one line of at most so many characters.

/// The sentences of a text: lines outside code fences, split after `.`, `!`, `?` and `;`.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines()
        .filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        })
        .flat_map(|line| Clauses { rest: line.trim() })
        .filter(|s| s.len() >= 8)
}

struct Clauses<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Clauses<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let end = bytes
            .windows(2)
            .position(|w| matches!(w, [b'.' | b'!' | b'?' | b';', b' ']))
            .map_or(bytes.len(), |i| i + 1);
        let (head, tail) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = tail.trim_start();
        Some(head.trim_start_matches(['-', '*', '#', '>', ' ']).trim())
    }
}

/// One line of at most `chars` characters: white space collapsed, cut at a word with `…`.
pub(crate) fn clip(text: &str, chars: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let room = chars.saturating_sub(count + usize::from(count > 0));
        let len = word.chars().take(room + 1).count();
        if len > room {
            return cut(out, word, room);
        }
        if count > 0 {
            out.push(' ');
        }
        out.extend(word.chars().filter(|c| !c.is_control()));
        count += len + usize::from(count > 0);
    }
    out
}

/// Ends a line that ran out of room. A single word that is longer than the line is cut in itself.
fn cut(mut out: String, word: &str, room: usize) -> String {
    if out.is_empty() {
        out.extend(word.chars().take(room.saturating_sub(1)));
        if room == 0 {
            return out;
        }
    }
    out.push('…');
    out
}
