//! compact-eval
