//! compact-adapters
