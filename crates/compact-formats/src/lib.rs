//! compact-formats
