//! Servers that speak S3 and get conditional writes wrong: what a store of somebody's may well be.
//!
//! One is installed in seconds and belongs to `cargo xtask test`. Another has to be built, which takes
//! minutes: `cargo xtask storage` tests against both.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{BUCKET, KEY, ServerProcess, TestServers, access_keys, free_port, wait_for};
use crate::environment::{self, node::NodePackages};
use crate::shell::{self, Console};

/// s3rver: fourteen megabytes from npm.
pub(crate) const PACKAGES: NodePackages = NodePackages {
    name: "storage-npm",
    manifest: include_str!("../../../tests/storage/package.json"),
    lock: include_str!("../../../tests/storage/package-lock.json"),
};

/// s3s-fs, as cargo names what it builds.
const S3S: [&str; 4] = ["s3s-fs", "--version", "0.14.1", "--locked"];

/// What a server does with `If-None-Match: *`.
#[derive(Clone, Copy)]
pub(crate) enum FlawedServer {
    /// Nothing, and does not say so: s3rver.
    Ignoring,
    /// It looks first and writes then: s3s-fs.
    Racing,
}

/// A server that can be started.
pub(super) struct InstalledServer {
    flaw: &'static str,
    program: PathBuf,
    kind: FlawedServer,
}

impl FlawedServer {
    const ALL: [FlawedServer; 2] = [FlawedServer::Ignoring, FlawedServer::Racing];

    /// Returns what starts it, once it is there.
    pub(super) fn find_installed(self) -> Option<InstalledServer> {
        let (flaw, program) = match self {
            FlawedServer::Ignoring => {
                let folder = PACKAGES.complete_folder()?;
                ("ignored", folder.join("node_modules/s3rver/bin/s3rver.js"))
            }
            FlawedServer::Racing => ("races", build_folder().ok()?.join("bin/s3s-fs")),
        };
        let ready = InstalledServer {
            flaw,
            program,
            kind: self,
        };
        ready.program.exists().then_some(ready)
    }

    fn install(self) -> Result<()> {
        match self {
            FlawedServer::Ignoring => PACKAGES.install(&Console::Terminal),
            FlawedServer::Racing => {
                let place = build_folder()?.display().to_string();
                let how = [
                    "install",
                    "--features",
                    "binary",
                    "--debug",
                    "--root",
                    &place,
                ];
                shell::run("cargo", &[&how[..], &S3S].concat())
            }
        }
    }
}

/// Returns where what cargo builds is kept.
fn build_folder() -> Result<PathBuf> {
    environment::cache_folder("storage-cargo", &S3S.join(" "))
}

impl InstalledServer {
    fn start_command(&self, port: &str, data: &str) -> Command {
        match self.kind {
            FlawedServer::Ignoring => {
                let mut command = Command::new("node");
                command.arg(&self.program);
                command.args(["-d", data, "-a", "127.0.0.1", "-p", port, "--silent"]);
                command.args(["--configure-bucket", BUCKET]);
                command
            }
            FlawedServer::Racing => {
                let mut command = Command::new(&self.program);
                command.args(["--host", "127.0.0.1", "--port", port]);
                command.args(["--access-key", KEY, "--secret-key", KEY, data]);
                command
            }
        }
    }
}

impl TestServers {
    pub(super) fn start_flawed(&mut self, flawed: &InstalledServer) -> Result<()> {
        let name = format!("compact-{}-{}", flawed.flaw, std::process::id());
        let data = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&data);
        // A bucket is a folder to both of them.
        std::fs::create_dir_all(data.join(BUCKET))?;
        let port = free_port()?;
        let child = flawed
            .start_command(&port.to_string(), &data.display().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {}", flawed.program.display()))?;
        self.running.push(ServerProcess {
            child,
            data: Some(data),
            farewell: None,
        });
        wait_for(port).with_context(|| format!("{} did not start", flawed.program.display()))?;
        let place = format!("{} http://127.0.0.1:{port}", flawed.flaw);
        self.variables.push(("COMPACT_TEST_S3_FLAWED", place));
        Ok(())
    }
}

/// Tests the archive against each of them, building what is missing.
pub(crate) fn run() -> Result<()> {
    for kind in FlawedServer::ALL {
        if kind.find_installed().is_none() {
            kind.install()?;
        }
        let ready = kind
            .find_installed()
            .context("what was installed is not there")?;
        let mut servers = TestServers::default();
        servers.start_flawed(&ready)?;
        servers.variables.extend(access_keys());
        let variables: Vec<(&str, &str)> = servers
            .variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let test = "archive::tests::flawed::";
        let arguments = ["test", "-p", "compact-adapters", "--lib", test];
        shell::run_with("cargo", &arguments, &variables)?;
        println!("conditional writes: {}, found and handled", ready.flaw);
    }
    Ok(())
}
