//! What Compact is measured with: sessions from a seed, benchmarks and metrics.
//!
//! Nothing here takes part in a compaction. The generated sessions are the repository's examples and
//! the material of its benchmarks; their answer keys say what a good view must still carry.

pub mod example;
pub mod fuzz;
pub mod generate;
mod grammar;
mod random;
