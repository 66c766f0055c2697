//! What stands behind the ports: stores, estimators, exporters, and configuration files.

pub mod agent;
pub mod archive;
pub mod catalog;
pub mod config;
mod database;
pub mod estimator;
pub mod exporter;
pub mod hook_store;
pub mod llm;
pub mod postgres;
pub mod private;
pub mod recall;
pub mod run;
pub mod seal;
pub mod store;
pub mod transcript;
