//! How surely a sentence takes back what was said before.
//!
//! A rule that falls wrongly is lost, while one that stands beside the words that may end it can be judged by who reads
//! both. So only what leaves no doubt takes a rule away: not what is denied ("don't forget the backups"), nor what somebody else
//! wants, nor what comes on top of what was said, nor a thing that is "no longer" something which no rule can be.

use super::cue::{is_lifting, is_replacement, is_revision};
use crate::cue_list::{PhraseList, WordList, cue_file};

static RULE_NAME: PhraseList = PhraseList::anywhere(cue_file!("rule_name"));
static REPORTED_WISH: PhraseList = PhraseList::anywhere(cue_file!("reported_wish"));
static ADDITION: PhraseList = PhraseList::anywhere(cue_file!("addition"));
static BINDING: PhraseList = PhraseList::anywhere(cue_file!("binding"));
static TAKE_BACK_VERBS: WordList = WordList::new(cue_file!("take_back_verb"));
static DENIALS: WordList = WordList::new(cue_file!("denial"));

/// How surely a sentence takes something back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// It does not.
    No,
    /// It may: both stand, the earlier words first.
    Possible,
    /// It gives an order in the place of another one.
    Replacing,
    /// It takes back what its object says: "forget the backups".
    OfObject,
    /// It takes back what it calls a rule, or what was said.
    OfRule,
}

impl Withdrawal {
    pub(crate) fn of_sentence(sentence: &str) -> Withdrawal {
        let verbs = TakeBackVerbs::in_sentence(sentence);
        if verbs.is_denied || !is_revision(sentence) {
            return Withdrawal::No;
        }
        let only_lifts = || is_lifting(sentence) && !is_replacement(sentence);
        if REPORTED_WISH.is_in(sentence)
            || ADDITION.is_in(sentence)
            || only_lifts() && !BINDING.is_in(sentence)
        {
            return Withdrawal::Possible;
        }
        match (RULE_NAME.is_in(sentence), verbs.takes_back) {
            (true, _) => Withdrawal::OfRule,
            (false, true) => Withdrawal::OfObject,
            (false, false) => Withdrawal::Replacing,
        }
    }

    /// Whether it takes something back beyond doubt.
    pub(crate) fn is_certain(self) -> bool {
        !matches!(self, Withdrawal::No | Withdrawal::Possible)
    }
}

/// The verbs of a sentence that take something back.
#[derive(Default)]
struct TakeBackVerbs {
    takes_back: bool,
    /// One of them is denied, and none is not.
    is_denied: bool,
}

/// Words before a verb among which one denies it, and behind it.
const BEFORE: usize = 3;
const BEHIND: usize = 1;

impl TakeBackVerbs {
    fn in_sentence(sentence: &str) -> TakeBackVerbs {
        let is_part = |c: char| c.is_alphanumeric() || c == '\'';
        let words = sentence.split(|c: char| !is_part(c));
        let words = words.filter(|word| !word.is_empty());
        let words: Vec<String> = words
            .map(|word| word.replace('’', "'").to_lowercase())
            .collect();
        let denies = |word: &String| DENIALS.has(word);
        let mut verbs = TakeBackVerbs::default();
        let mut denied = false;
        for (at, word) in words.iter().enumerate() {
            // "N'oublie pas": the verb stands behind what is left of another word.
            let verb = word.rsplit('\'').next().unwrap_or(word);
            if !TAKE_BACK_VERBS.has(verb) {
                continue;
            }
            let before = words.get(at.saturating_sub(BEFORE)..at).unwrap_or_default();
            let behind = words.iter().skip(at + 1).take(BEHIND);
            match before.iter().chain(behind).any(denies) {
                true => denied = true,
                false => verbs.takes_back = true,
            }
        }
        verbs.is_denied = denied && !verbs.takes_back;
        verbs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leaves_no_doubt_takes_something_back() {
        let rows = [
            ("Please don't forget about the backups.", Withdrawal::No),
            ("You must not ignore the backups rule.", Withdrawal::No),
            (
                "I can't just scrap the backups rule, even if Bob asks.",
                Withdrawal::No,
            ),
            ("Vergiss nicht die Regel mit den Backups.", Withdrawal::No),
            ("N'oublie pas la règle sur les backups.", Withdrawal::No),
            ("Don’t drop the rule.", Withdrawal::No),
            (
                "Bob asked me to drop the backups rule.",
                Withdrawal::Possible,
            ),
            ("Actually, never round taxes either.", Withdrawal::Possible),
            (
                "The staging database is no longer reachable from here.",
                Withdrawal::Possible,
            ),
            ("You no longer need to ask.", Withdrawal::Replacing),
            ("The 20 lines limit no longer applies.", Withdrawal::OfRule),
            (
                "Forget what I said about pushing to main.",
                Withdrawal::OfRule,
            ),
            ("Never mind the tabs thing.", Withdrawal::OfRule),
            (
                "Drop the deprecated function from the internal API.",
                Withdrawal::OfObject,
            ),
            (
                "Don't ask me, just drop the table prefix.",
                Withdrawal::OfObject,
            ),
            ("Actually, use spaces instead.", Withdrawal::Replacing),
            ("Never round prices.", Withdrawal::No),
        ];
        for (sentence, expected) in rows {
            assert_eq!(Withdrawal::of_sentence(sentence), expected, "{sentence}");
        }
    }
}
