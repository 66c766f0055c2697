//! A view that is being made, with its price.

use std::borrow::Cow;

use crate::message::EntryKind;
use crate::redact::{RedactionCounts, count_placeholders};
use crate::summarize::SummaryBody;
use crate::token::Units;
use crate::verify::Retention;
use crate::view::{View, ViewItem};

use super::CompactionInput;
use super::cost::view_cost;

/// A body as it was rendered, not yet redacted.
pub(super) struct RenderedBody {
    pub(super) body: SummaryBody,
    /// What a model's words take of it.
    pub(super) prose: Units,
}

impl From<SummaryBody> for RenderedBody {
    fn from(body: SummaryBody) -> Self {
        let prose = Units(0);
        RenderedBody { body, prose }
    }
}

/// A view with the summary that stands in it.
pub(super) struct ViewDraft {
    pub(super) body: SummaryBody,
    pub(super) view: View,
    pub(super) cost: Units,
    pub(super) redactions: RedactionCounts,
    /// What a model's words take of the body.
    pub(super) prose: Units,
}

impl ViewDraft {
    /// The draft with what its view costs as a whole, not as the sum of its parts.
    pub(super) fn count_whole(self, input: &CompactionInput<'_>) -> ViewDraft {
        ViewDraft {
            cost: view_cost(input, &self.view, |_| true),
            ..self
        }
    }
}

/// A draft whose anchors were looked for.
pub(super) struct VerifiedDraft {
    pub(super) draft: ViewDraft,
    pub(super) retention: Retention,
}

/// Takes secrets out of a body and counts what stands in it for them. Most were taken out of what the
/// ledger was drawn from.
pub(super) fn redact_body(
    input: &CompactionInput<'_>,
    body: SummaryBody,
) -> (SummaryBody, RedactionCounts) {
    let redacted = input
        .redactor
        .redact(&body.text, &mut RedactionCounts::new());
    let body = match redacted {
        Cow::Owned(text) if text != body.text => SummaryBody {
            cost: input.estimator.count_units(&text),
            text,
        },
        _ => body,
    };
    let redactions = count_placeholders(&body.text);
    (body, redactions)
}

/// True for the summary of a view.
pub(super) fn is_summary(item: &ViewItem) -> bool {
    matches!(item, ViewItem::New(e) if matches!(e.meta.kind, EntryKind::Summary { .. }))
}
