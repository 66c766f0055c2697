//! `cargo xtask fuzz`: mutations of the corpus against every reader, for some seconds or so many inputs each.
//!
//! An input that breaks a promise is kept in `target/fuzz`; once mended, it belongs in the corpus. With `--guided`
//! libFuzzer does it ([`guided`]).

pub(crate) mod guided;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use compact_eval::fuzz::{self, FuzzEffort};

use crate::shell::{self, Console};

/// Where the seeds of a format are.
const CORPUS: &str = "crates/compact-formats/corpus";

/// Fuzzes every format, or one of them; fails when a promise was broken. Without a seed, another
/// run tries other inputs.
pub(crate) fn run(
    console: &Console,
    effort: FuzzEffort,
    target: Option<&str>,
    seed: Option<u64>,
) -> Result<()> {
    let seed = seed.unwrap_or_else(clock_seed);
    console.print_line(&format!("seed {seed}"))?;
    let found = shell::target_folder().join("fuzz");
    fs::create_dir_all(&found)?;
    let (mut inputs, mut broken) = (0, 0);
    for name in list_targets(target)? {
        match fuzz_one(console, &name, effort, seed, &found)? {
            Some(tried) => inputs += tried,
            None => broken += 1,
        }
    }
    match broken {
        0 => console.print_line(&format!("{inputs} inputs, no promise was broken")),
        n => bail!("{n} formats broke a promise; the inputs are in target/fuzz"),
    }
}

/// Returns the formats that have seeds.
fn list_targets(wanted: Option<&str>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(shell::repo_root().join(CORPUS))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && wanted.is_none_or(|wanted| wanted == name) {
            names.push(name);
        }
    }
    names.sort();
    if let (Some(wanted), true) = (wanted, names.is_empty()) {
        bail!("{CORPUS} has no folder {wanted}");
    }
    Ok(names)
}

/// Fuzzes one format and returns how many inputs it was given; `None` when a promise was broken.
fn fuzz_one(
    console: &Console,
    name: &str,
    effort: FuzzEffort,
    seed: u64,
    found: &Path,
) -> Result<Option<u64>> {
    let Ok(format) = name.parse() else {
        console.print_line(&format!("{name:<18} skipped: no reader of that name"))?;
        return Ok(Some(0));
    };
    let seeds = read_seeds(name)?;
    let last = found.join(format!("{name}.last"));
    // An input that ends the process can be found here.
    let mut keep = |input: &[u8]| drop(fs::write(&last, input));
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let run = fuzz::fuzz_format(format, &seeds, seed, effort, &mut keep);
    std::panic::set_hook(quiet);
    let Some((input, promise)) = run.failure else {
        console.print_line(&format!(
            "{name:<18} {:>8} inputs, {:>5} outcomes",
            run.inputs, run.outcomes
        ))?;
        return Ok(Some(run.inputs));
    };
    let path = found.join(format!("{name}.broken"));
    fs::write(&path, input).with_context(|| format!("cannot write {}", path.display()))?;
    console.print_line(&format!(
        "{name:<18} after {} inputs: {promise}",
        run.inputs
    ))?;
    console.print_line(&format!("{:<18} {}", "", path.display()))?;
    Ok(None)
}

fn read_seeds(name: &str) -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for entry in fs::read_dir(shell::repo_root().join(CORPUS).join(name))? {
        seeds.push(fs::read(entry?.path())?);
    }
    Ok(seeds)
}

fn clock_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
