//! What twenty compactions of a growing transcript leave on disk, over its zstd size.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use compact_adapters::archive::ObjectArchive;
use compact_core::token::Tokens;
use compact_runtime::manager::Request;

use crate::subject::{Subject, WINDOW, manager, parse, runtime};

const COMPACTIONS: usize = 20;

pub(crate) fn over_zstd(subject: &Subject) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let manager = manager(WINDOW, Some(Arc::new(ObjectArchive::open(folder.path())?)))?;
    let runtime = runtime()?;
    let lines: Vec<&str> = subject.file.split_inclusive('\n').collect();
    for part in 1..=COMPACTIONS {
        let file: String = lines
            .iter()
            .take(lines.len() * part / COMPACTIONS)
            .copied()
            .collect();
        let parsed = parse(&file)?;
        let request = Request {
            conversation: &parsed.conversation,
            rules: parsed.document.rules(),
            format: parsed.document.format().name(),
            original: Bytes::from(file),
            session_id: Some("bench"),
            budget: Some(Tokens(WINDOW / 10)),
            summary_limit: None,
            note: None,
            told: None,
        };
        runtime
            .block_on(manager.compact(&request))
            .with_context(|| format!("compaction {part}"))?;
    }
    let transcript = zstd::encode_all(subject.file.as_bytes(), 3)?.len();
    Ok(bytes_below(folder.path())? as f64 / transcript as f64)
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() {
            bytes_below(&entry.path())?
        } else {
            data.len()
        };
    }
    Ok(bytes)
}
