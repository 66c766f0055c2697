//! The methods that are compared, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A way to make a text of a prefix within a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// This engine, without a model.
    Compact,
    /// This engine with a model's words in the summary.
    CompactLlm,
    /// The last events that fit.
    KeepLast,
    /// The first request and the last events.
    HeadTail,
    /// Tool results shortened, then the last events.
    TrimTools,
    /// A list of identifiers and the last events.
    EntityLedger,
    /// The genuine summary of the agent's own compaction.
    Real,
    /// What hindsight would keep.
    Oracle,
    /// All that the engine is given, whatever the budget: nothing can keep more.
    Whole,
}

impl Method {
    /// All, in the order of a table.
    pub const ALL: [Method; 9] = [
        Method::Compact,
        Method::CompactLlm,
        Method::KeepLast,
        Method::HeadTail,
        Method::TrimTools,
        Method::EntityLedger,
        Method::Real,
        Method::Oracle,
        Method::Whole,
    ];

    /// Its name on the command line and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Compact => "compact",
            Method::CompactLlm => "compact_llm",
            Method::KeepLast => "keep_last",
            Method::HeadTail => "head_tail",
            Method::TrimTools => "trim_tools",
            Method::EntityLedger => "entity_ledger",
            Method::Real => "real",
            Method::Oracle => "oracle",
            Method::Whole => "whole",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Method::ALL.into_iter();
        all.find(|method| method.as_str() == name)
            .ok_or_else(|| UnknownMethod(name.to_owned()))
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A method that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown method '{0}': use compact, compact_llm, keep_last, head_tail, trim_tools, entity_ledger, real, oracle or whole"
)]
pub struct UnknownMethod(String);
