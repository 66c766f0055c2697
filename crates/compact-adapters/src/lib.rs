//! What stands behind the ports: stores, estimators, exporters, and configuration files.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod agent;
pub mod archive;
pub mod catalog;
pub mod config;
mod database;
pub mod estimator;
pub mod exporter;
pub mod hook_store;
pub mod journal;
pub mod leftover;
pub mod llm;
pub mod postgres;
pub mod priority;
pub mod private;
pub mod recall;
pub mod run;
pub mod seal;
pub mod store;
pub mod transcript;
pub mod waiting;
