//! A rule of the user's own: a function that sees what no pattern can tell.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{RedactionCounts, placeholder, placeholder_label};

/// Takes out of a text what must not cross a boundary.
///
/// It sees text from which the maintained rules have already taken what they know. What it leaves
/// in place of a secret is its own choice; [`placeholder`] makes one that is stable and says nothing.
/// Given its own output it should change nothing, or redacting twice is not redacting once.
pub trait Scrub: Send + Sync {
    /// The text without it; `None` when there is nothing to take out.
    fn scrub(&self, text: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String> + Send + Sync> Scrub for F {
    fn scrub(&self, text: &str) -> Option<String> {
        self(text)
    }
}

/// A callback with its name in counts and placeholders.
#[derive(Clone)]
pub(super) struct ScrubCallback {
    name: String,
    scrub: Arc<dyn Scrub>,
}

impl fmt::Debug for ScrubCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Callback").field(&self.name).finish()
    }
}

impl ScrubCallback {
    pub(super) fn new(name: &str, scrub: Arc<dyn Scrub>) -> ScrubCallback {
        ScrubCallback {
            name: placeholder_label(name),
            scrub,
        }
    }

    /// Its name, as counts and placeholders have it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The text as the callback leaves it. One that panics gets its whole text withheld: it was
    /// there to find something, and nobody knows whether it did.
    pub(super) fn apply<'t>(
        &self,
        text: Cow<'t, str>,
        counts: &mut RedactionCounts,
    ) -> Cow<'t, str> {
        if text.is_empty() {
            return text;
        }
        let scrubbed = catch_unwind(AssertUnwindSafe(|| self.scrub.scrub(&text)));
        match scrubbed {
            Ok(None) => text,
            Ok(Some(same)) if same == *text => text,
            Ok(Some(changed)) => {
                *counts.entry(self.name.clone()).or_default() += 1;
                Cow::Owned(changed)
            }
            Err(_) => {
                *counts.entry(format!("{}-failed", self.name)).or_default() += 1;
                Cow::Owned(placeholder(&self.name, &text))
            }
        }
    }
}
