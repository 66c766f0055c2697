//! Valid histories of an agent, to be told in any provider's words.

use proptest::prelude::*;
use serde_json::Value;

/// What the model thinks before it speaks or calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    Never,
    /// Once in a turn, at its start.
    Opening,
    /// Before every message.
    Interleaved,
}

#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub words: Option<String>,
    /// Arguments and result of each parallel call.
    pub calls: Vec<(String, String)>,
    /// The result of the first call comes with an image.
    pub image: bool,
    /// A tool that the provider runs is used as well.
    pub hosted: bool,
    /// The person speaks along with the results.
    pub aside: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub words: String,
    pub image: bool,
    /// An instruction after the person's words.
    pub instruction: Option<String>,
    pub exchanges: Vec<Exchange>,
    pub reply: Option<String>,
}

/// How the history ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a person's words.
    Asked,
    /// With results that the model has not seen.
    Answered,
    /// With calls that wait for their results.
    Waiting,
}

#[derive(Clone, Debug)]
pub(super) struct History {
    pub system: Option<String>,
    pub turns: Vec<Turn>,
    pub thinking: Thinking,
    pub end: End,
    /// Somewhere in the past a call was never answered, and the conversation went on.
    pub interrupted: bool,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9_/., ]{1,60}",
        ("[a-z]{3,9}", 1usize..120).prop_map(|(word, n)| format!("{word}/src_{n}.rs: ").repeat(n)),
        Just("日本語の長い文章です。".repeat(20)),
        Just("You must never touch deploy/prod.yaml.".to_owned()),
    ]
    .prop_filter("says something", |text| !text.trim().is_empty())
}

fn exchange() -> impl Strategy<Value = Exchange> {
    (
        prop::option::weighted(0.3, text()),
        prop::collection::vec((text(), text()), 1..4),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.15, text()),
    )
        .prop_map(|(words, calls, image, hosted, aside)| Exchange {
            words,
            calls,
            image,
            hosted,
            aside,
        })
}

fn turn() -> impl Strategy<Value = Turn> {
    (
        text(),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.15, "[a-z ]{1,40}[a-z]"),
        prop::collection::vec(exchange(), 0..6),
        prop::option::weighted(0.7, text()),
    )
        .prop_map(|(words, image, instruction, exchanges, reply)| Turn {
            words,
            image,
            instruction,
            exchanges,
            reply,
        })
}

pub(super) fn history() -> impl Strategy<Value = History> {
    (
        prop::option::of("[a-z ]{1,40}[a-z]"),
        prop::collection::vec(turn(), 1..8),
        exchange(),
        prop_oneof![
            Just(Thinking::Never),
            Just(Thinking::Opening),
            Just(Thinking::Interleaved)
        ],
        prop_oneof![Just(End::Asked), Just(End::Answered), Just(End::Waiting)],
        prop::bool::weighted(0.2),
    )
        .prop_map(|(system, turns, last, thinking, end, interrupted)| {
            ended(
                History {
                    system,
                    turns,
                    thinking,
                    end,
                    interrupted,
                },
                last,
            )
        })
}

impl History {
    /// How many calls of an exchange are answered.
    pub(super) fn answered(&self, turn: usize, exchange: usize) -> usize {
        let exchanges = &self.turns[turn].exchanges;
        let calls = exchanges[exchange].calls.len();
        let is_last = turn + 1 == self.turns.len() && exchange + 1 == exchanges.len();
        match (is_last, self.end) {
            (true, End::Waiting) => 0,
            (false, _) if self.interrupted && self.turns.len() > 1 && turn + exchange == 0 => {
                calls - 1
            }
            _ => calls,
        }
    }

    /// The same without what stricter servers refuse: instructions and asides within the history.
    pub(super) fn strict(mut self) -> History {
        for turn in &mut self.turns {
            turn.instruction = None;
            turn.exchanges.iter_mut().for_each(|e| e.aside = None);
        }
        self
    }

    /// The same, thinking where the mode of an Anthropic body has the model think.
    pub(super) fn thinking_as(mut self, mode: &Value) -> History {
        if mode["type"] == "enabled" && self.thinking == Thinking::Never {
            self.thinking = Thinking::Interleaved;
        }
        self
    }

    /// Whether the model thinks before a message; `is_first` for the first of a turn.
    pub(super) fn thinks(&self, is_first: bool) -> bool {
        match self.thinking {
            Thinking::Never => false,
            Thinking::Opening => is_first,
            Thinking::Interleaved => true,
        }
    }
}

/// Makes the last turn end as the history does, and every other turn end with a reply.
fn ended(mut history: History, mut last: Exchange) -> History {
    let count = history.turns.len();
    for turn in &mut history.turns {
        turn.reply.get_or_insert_with(|| "done".to_owned());
    }
    let turn = &mut history.turns[count - 1];
    turn.reply = None;
    match history.end {
        End::Asked => turn.exchanges.clear(),
        End::Answered => turn.exchanges.push(last),
        End::Waiting => {
            last.aside = None;
            turn.exchanges.push(last);
        }
    }
    history
}
