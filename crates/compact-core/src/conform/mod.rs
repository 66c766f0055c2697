//! Conform: what an edited prefix forces on what stands after it.
//!
//! Two things. *Reasoning* that a provider has signed over the exact bytes before it is worthless,
//! or an error, once those bytes changed. *Order*: where a wire wants roles to alternate, or a
//! person's message first or last, and what stood between is gone, a bridge of a few words takes
//! its place. Bridges are inserted, never merged into a neighbour, so that entries stay whole.

mod bridge;
mod reasoning;

use crate::message::Conversation;
use crate::outline::Outline;
use crate::view::View;
use crate::wire::WireRules;

pub use bridge::BRIDGE;
pub(crate) use bridge::reserve;
pub use reasoning::loop_is_whole;
pub(crate) use reasoning::loses_reasoning;

/// Makes a view legal after its edits.
pub fn conform(
    view: View,
    conversation: &Conversation,
    outline: &Outline,
    rules: &WireRules,
) -> View {
    let view = reasoning::strip_reasoning(view, conversation, outline, rules);
    bridge::insert(view, conversation, outline, rules)
}
