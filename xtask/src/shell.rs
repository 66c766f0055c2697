//! Running other programs from the root of the repository.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The feature by which the command has everything, as the workspace names it.
pub(crate) const FULL: &str = "compactctl/full";

/// Builds the command with everything it can do, with these further arguments.
pub(crate) fn build_command(console: &Console, more: &[&str]) -> Result<()> {
    let build = [
        "build",
        "--quiet",
        "--package",
        "compactctl",
        "--features",
        FULL,
    ];
    console.run("cargo", &[&build[..], more].concat(), &[])
}

/// Returns the root of the repository.
pub(crate) fn repo_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns where cargo puts what it builds.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repo_root().join("target"), PathBuf::from)
}

/// Runs a program and fails when it does.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    Console::Terminal.run(program, arguments, &[])
}

/// Runs a program with some variables set and fails when it does.
pub(crate) fn run_with(
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<()> {
    Console::Terminal.run(program, arguments, variables)
}

/// Where programs print.
#[derive(Clone, Debug)]
pub(crate) enum Console {
    /// Where we print.
    Terminal,
    /// At the end of a file, so that programs that run side by side do not mix their lines. Nobody looks at it
    /// meanwhile, so one that hangs would hold up everything until a build server gives up and shows nothing: `longest`
    /// is how long each may run.
    File { path: PathBuf, longest: Duration },
}

impl Console {
    /// Runs a program from the root of the repository and fails when it does.
    pub(crate) fn run(
        &self,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<()> {
        let line = format!("{program} {}", arguments.join(" "));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(variables.iter().copied())
            .current_dir(repo_root());
        if let Some(mut file) = self.open_file()? {
            writeln!(file, "$ {line}")?;
            command
                .stdin(Stdio::null())
                .stdout(file.try_clone()?)
                .stderr(file);
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("could not start `{line}`"))?;
        let status = match self {
            Console::File { longest, .. } => {
                wait_or_end(&mut child, *longest).with_context(|| format!("`{line}`"))?
            }
            Console::Terminal => child.wait()?,
        };
        if !status.success() {
            bail!("`{line}` failed");
        }
        Ok(())
    }

    /// Prints a line.
    pub(crate) fn print_line(&self, line: &str) -> Result<()> {
        match self.open_file()? {
            Some(mut file) => writeln!(file, "{line}").context("could not write a log"),
            None => {
                println!("{line}");
                Ok(())
            }
        }
    }

    fn open_file(&self) -> Result<Option<File>> {
        let Console::File { path, .. } = self else {
            return Ok(None);
        };
        let opened = File::options().append(true).create(true).open(path);
        let file = opened.with_context(|| format!("could not write {}", path.display()))?;
        Ok(Some(file))
    }
}

/// Waits for a program; ends it and fails if that takes longer than `limit`. It is asked before it is killed, so that
/// cargo, nextest and pytest end what they started. (A process group of its own would not hear Ctrl-C.)
fn wait_or_end(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    if let Some(status) = wait_for(child, limit)? {
        return Ok(status);
    }
    run_succeeds("kill", &["-TERM", &child.id().to_string()]);
    if wait_for(child, Duration::from_secs(20))?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    bail!("did not end within {} s and was ended", limit.as_secs());
}

/// Waits for a program for so long; `None` if it is still running then.
fn wait_for(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(child.try_wait()?)
}

/// Returns what a program prints.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let line = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(repo_root())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("could not start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns what a program prints, unless it is missing or fails.
pub(crate) fn quiet_output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// Gets packages of Debian or Ubuntu; waits for whoever else is installing some.
pub(crate) fn install_debian_packages(console: &Console, names: &[&str]) -> Result<()> {
    let lock = "DPkg::Lock::Timeout=600";
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    console.run("apt-get", &["-o", lock, "update", "-qq"], &quiet)?;
    let apt = [
        "-o",
        lock,
        "install",
        "-qq",
        "-y",
        "--no-install-recommends",
    ];
    console.run("apt-get", &[&apt[..], names].concat(), &quiet)
}

/// Returns true for who may install packages of the system.
pub(crate) fn is_root() -> bool {
    quiet_output("id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

/// Returns whether a program starts and answers with success.
pub(crate) fn run_succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns true on a build server, where nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let error = wait_or_end(&mut child, Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("did not end within"), "{error}");
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn a_program_that_ends_in_time_keeps_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = wait_or_end(&mut child, Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(3));
    }
}
