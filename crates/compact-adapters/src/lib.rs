//! What stands behind the ports: stores, estimators, exporters, and configuration files.

pub mod archive;
pub mod catalog;
mod private;
