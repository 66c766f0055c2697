//! compact-runtime
