//! What twenty compactions of a growing transcript leave on disk, over its zstd size.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use compact_adapters::archive::ObjectArchive;
use compact_core::token::Tokens;
use compact_runtime::manager::CompactionRequest;

use crate::subject::{BenchSession, WINDOW, manager, parse, runtime};

const COMPACTIONS: usize = 20;

pub(crate) fn over_zstd(subject: &BenchSession) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let manager = manager(WINDOW, Some(Arc::new(ObjectArchive::open(folder.path())?)))?;
    let runtime = runtime()?;
    let bytes = subject.file.iter().enumerate();
    let ends: Vec<usize> = bytes.filter(|b| *b.1 == b'\n').map(|b| b.0).collect();
    for part in 1..=COMPACTIONS {
        let last = ends.get((ends.len() * part / COMPACTIONS).saturating_sub(1));
        let file = subject.file.slice(..=*last.context("no line")?);
        let parsed = parse(file.clone())?;
        let request = CompactionRequest::from_transcript(&parsed, file)
            .with_session("bench")
            .with_budget(Tokens(WINDOW / 10));
        runtime
            .block_on(manager.compact(&request))
            .with_context(|| format!("compaction {part}"))?;
    }
    let transcript = zstd::encode_all(&*subject.file, 3)?.len();
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
