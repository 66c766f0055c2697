//! `cargo xtask examples`: the generated sessions, written or compared.

use anyhow::{Context, Result, bail};
use compact_eval::example;

use crate::shell;

/// Writes every file of `examples/`.
pub(crate) fn write() -> Result<()> {
    let folder = shell::repo_root().join("examples");
    std::fs::create_dir_all(&folder)?;
    for file in example::all_files() {
        let path = folder.join(file.name);
        std::fs::write(&path, &file.content)
            .with_context(|| format!("could not write {}", path.display()))?;
        println!("examples/{}: {} KB", file.name, file.content.len() / 1000);
    }
    Ok(())
}

/// Fails when a file of `examples/` is not what the generator writes.
pub(crate) fn check() -> Result<String> {
    let files = example::all_files();
    for file in &files {
        let path = shell::repo_root().join("examples").join(file.name);
        if std::fs::read_to_string(&path).unwrap_or_default() != file.content {
            bail!(
                "examples/{} is out of date, run `cargo xtask examples`",
                file.name
            );
        }
    }
    Ok(format!("{} examples up to date", files.len()))
}
