//! OpenAI chat messages: a request body, a list, or one message per line.
//!
//! Plain `{role, content}` messages are the same wire without tools, so both share this module.

mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, WireRules};

pub(crate) use self::read::read;
pub(crate) use self::write::{emit, extend};
use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope};

pub(crate) const PLACEMENTS: &[Placement] = &[
    Placement::AssistantMessage,
    Placement::UserMessage,
    Placement::SystemSuffix,
];

static OPENAI_RULES: WireRules = WireRules {
    name: "openai-chat",
    placements: PLACEMENTS,
    ..WireRules::LENIENT
};

static PLAIN_RULES: WireRules = WireRules {
    name: "messages",
    placements: PLACEMENTS,
    ..WireRules::LENIENT
};

/// Mistral and the chat templates of local servers.
static STRICT_RULES: WireRules = WireRules {
    name: "openai-chat-strict",
    placements: &[Placement::UserMessage, Placement::SystemSuffix],
    alternation: true,
    opens_with_user: true,
    ends_with_user: true,
    ..WireRules::LENIENT
};

/// Chat messages under one set of rules.
pub(crate) struct Chat {
    rules: &'static WireRules,
}

pub(crate) static OPENAI: Chat = Chat {
    rules: &OPENAI_RULES,
};
pub(crate) static PLAIN: Chat = Chat {
    rules: &PLAIN_RULES,
};

impl Wire for Chat {
    fn rules(&self) -> &'static WireRules {
        self.rules
    }

    fn strict_rules(&self) -> &'static WireRules {
        &STRICT_RULES
    }

    fn read(&self, source: &[u8], _scope: Scope) -> Result<Reading, FormatError> {
        read(source)
    }

    fn emit(&self, page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
        emit(page, view, &|message| message)
    }

    fn extend(
        &self,
        first: &Document,
        later: &Page<'_>,
        from: usize,
    ) -> Result<Vec<u8>, FormatError> {
        extend(first, later, from)
    }
}
