//! How much a model can read: an explicit value, the registry's, or a cautious default.
//!
//! The window is the limit on *input*, not the total that some vendors advertise: a prompt that
//! fills the total leaves no room for an answer and is refused.

mod registry;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use registry::{ModelInfo, ModelPrice, find_model, models};

use crate::token::Tokens;

/// The window of a model that nobody knows.
pub(crate) const DEFAULT_WINDOW: Tokens = Tokens(128_000);

/// A window and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The most a prompt may hold.
    pub tokens: Tokens,
    /// Who said so.
    pub source: WindowSource,
}

/// Where a window's size came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The configuration or a flag.
    Explicit,
    /// The registry, under this name.
    Registry(&'static str),
    /// Nobody: the model is unknown or not named.
    Default,
}

impl Window {
    /// Explicit value, else the registry's for the model, else 128,000.
    pub fn for_model(explicit: Option<Tokens>, model: Option<&str>) -> Window {
        if let Some(tokens) = explicit {
            return Window {
                tokens,
                source: WindowSource::Explicit,
            };
        }
        match model.and_then(find_model) {
            Some(known) => Window {
                tokens: Tokens(known.input),
                source: WindowSource::Registry(known.name),
            },
            None => Window {
                tokens: DEFAULT_WINDOW,
                source: WindowSource::Default,
            },
        }
    }

    /// The same, or the limit where that is smaller.
    #[must_use]
    pub fn at_most(self, limit: Option<Tokens>) -> Window {
        match limit {
            Some(tokens) if tokens < self.tokens => Window {
                tokens,
                source: WindowSource::Explicit,
            },
            _ => self,
        }
    }
}

impl fmt::Display for WindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowSource::Explicit => f.write_str("configured"),
            WindowSource::Registry(name) => write!(f, "registry: {name}"),
            WindowSource::Default => f.write_str("default"),
        }
    }
}
