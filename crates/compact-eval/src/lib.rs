//! What Compact is measured with: sessions from a seed, benchmarks and metrics.
//!
//! Nothing here takes part in a compaction. The generated sessions are the repository's examples and
//! the material of its benchmarks; their answer keys say what a good view must still carry. Real
//! transcripts are measured by what their agents named next ([`metric`]).

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod answer_key;
pub mod baseline;
pub mod chat;
pub mod compaction;
pub mod dataset;
pub mod decay;
pub mod event;
pub mod example;
pub mod fact_check;
pub mod fuzz;
pub mod generate;
mod grammar;
pub mod interval;
pub mod method;
pub mod metric;
pub mod oracle;
pub mod probe;
mod prose;
pub mod qa;
pub mod quiz;
mod random;
pub mod report;
pub mod retention;
pub mod task;
mod text;
