//! The session that everything is measured on, and the baseline: a BPE count of its texts.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use compact_adapters::estimator::BpeEstimator;
use compact_core::message::{Conversation, Entry};
use compact_core::redact::{RedactionBoundary, RedactionRules, Redactor};
use compact_core::token::Tokens;
use compact_eval::generate;
use compact_formats::{Format, ParsedTranscript, TranscriptScope};
use compact_runtime::Manager;
use compact_runtime::port::archive::ArchiveStore;
use compact_runtime::port::catalog::MemoryCatalog;
use tokio::runtime::Runtime;

/// The window of the models that such sessions run on.
pub(crate) const WINDOW: u64 = 200_000;

pub(crate) struct BenchSession {
    pub(crate) file: Bytes,
    pub(crate) conversation: Conversation,
    pub(crate) tokens: u64,
}

impl BenchSession {
    pub(crate) fn new() -> BenchSession {
        BenchSession::of(1_000_000)
    }

    /// A session of about so many tokens.
    pub(crate) fn of(tokens: usize) -> BenchSession {
        let file = Bytes::from(generate::coding_session(21, tokens).text);
        let conversation = parse(file.clone())
            .map(|parsed| parsed.conversation)
            .unwrap_or_default();
        let tokens = count(&conversation.entries);
        BenchSession {
            file,
            conversation,
            tokens,
        }
    }

    /// The baseline.
    pub(crate) fn count(&self) -> u64 {
        count(&self.conversation.entries)
    }
}

/// The document holds the bytes that it was read from, as everywhere.
pub(crate) fn parse(file: Bytes) -> Result<ParsedTranscript> {
    Ok(compact_formats::parse(
        file,
        Some(Format::ClaudeCode),
        TranscriptScope::Live,
    )?)
}

fn count(entries: &[Entry]) -> u64 {
    let bpe = bpe_openai::o200k_base();
    let texts = entries
        .iter()
        .flat_map(|entry| &entry.blocks)
        .flat_map(|block| block.text_parts());
    texts.map(|text| bpe.count(text) as u64).sum()
}

/// A manager as the configuration makes it by default, with its records in memory.
pub(crate) fn manager(window: u64, archive: Option<Arc<dyn ArchiveStore>>) -> Result<Manager> {
    let rules = RedactionRules::default().at_boundary(RedactionBoundary::Summary);
    let (catalog, redactor) = (MemoryCatalog::default(), Redactor::new(&rules)?);
    let estimator = Arc::new(BpeEstimator::O200k);
    let manager = Manager::new(
        Arc::new(catalog),
        estimator,
        Arc::new(redactor),
        Tokens(window),
    );
    Ok(manager.with_archive(archive))
}

pub(crate) fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}
