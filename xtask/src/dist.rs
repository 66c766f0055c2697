//! `cargo xtask dist`: everything that is shipped, in `target/artifacts`, and a test of each in a root of its own.
//!
//! One build of `compactctl` with the profile `dist`, static and without paths of this machine, goes into every
//! package. What has a date gets that of the commit, names are in order, and owners are root: the same commit and
//! compiler give the same bytes. Nothing is uploaded.
//!
//! Another architecture is built with a cross compiler and tried in an emulator; what is missing for either is named.

mod binary;
mod checksum;
mod deb;
mod npm;
mod oci;
mod self_test;
mod size;
mod tarball;
mod third_party;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::binary::BuiltCommand;
use self::third_party::ThirdParty;
use crate::dependencies::{cargo_metadata, text_field};
use crate::shell::{self, Console};

/// The target that is built where nobody names one.
pub(crate) const USUAL_TARGET: &str = "x86_64-unknown-linux-gnu";

/// The most that the command may take, stripped.
const COMMAND_LIMIT: u64 = 40_000_000;

/// The most that the image may take.
const IMAGE_LIMIT: u64 = 60_000_000;

/// What every package says of itself.
struct Release {
    version: String,
    target: &'static TargetNames,
    /// The date of everything, in seconds since 1970.
    date: u64,
    folder: PathBuf,
}

/// What a target is called by others, and what another machine builds and tries it with.
struct TargetNames {
    rust: &'static str,
    architecture: &'static str,
    debian: &'static str,
    oci: &'static str,
    npm: &'static str,
    /// The compiler and linker for C, and the package of Debian that has it.
    compiler: (&'static str, &'static str),
    /// The static program that runs it, and the package of Debian that has it.
    emulator: (&'static str, &'static str),
}

/// Static with glibc, whose allocator is the quicker one.
const TARGETS: &[TargetNames] = &[
    TargetNames {
        rust: USUAL_TARGET,
        architecture: "x86_64",
        debian: "amd64",
        oci: "amd64",
        npm: "x64",
        compiler: ("x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu"),
        emulator: ("qemu-x86_64-static", "qemu-user-static"),
    },
    TargetNames {
        rust: "aarch64-unknown-linux-gnu",
        architecture: "aarch64",
        debian: "arm64",
        oci: "arm64",
        npm: "arm64",
        compiler: ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        emulator: ("qemu-aarch64-static", "qemu-user-static"),
    },
];

/// How a program for a target is started here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ProgramStart {
    /// As it is.
    Native,
    /// By a program at this path.
    Emulated(String),
    /// Not at all, for want of this package.
    Impossible(&'static str),
}

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ArtifactKind {
    /// The bill of materials.
    Sbom,
    /// The archive for people who want the command in a folder.
    Archive,
    /// The package for Debian.
    Deb,
    /// The package for npm.
    Npm,
    /// The image for containers.
    Image,
    /// The wheel for Python.
    Wheel,
}

impl ArtifactKind {
    const ALL: [ArtifactKind; 6] = [
        ArtifactKind::Sbom,
        ArtifactKind::Archive,
        ArtifactKind::Deb,
        ArtifactKind::Npm,
        ArtifactKind::Image,
        ArtifactKind::Wheel,
    ];

    fn make(self, parts: &ReleaseParts) -> Result<PathBuf> {
        let ReleaseParts {
            release,
            command,
            third_party,
        } = parts;
        match self {
            ArtifactKind::Sbom => release.write("sbom.cdx.json", &third_party.sbom),
            ArtifactKind::Archive => tarball::make(release, command, third_party),
            ArtifactKind::Deb => deb::make(release, command, third_party),
            ArtifactKind::Npm => npm::make(release, command, third_party),
            ArtifactKind::Image => oci::make(release, command),
            ArtifactKind::Wheel => wheel::make(release, command),
        }
    }
}

/// What packages are made of.
struct ReleaseParts {
    release: Release,
    command: BuiltCommand,
    third_party: ThirdParty,
}

/// Makes and tests artifacts of a target: all of them where none is named. A command that was built elsewhere is
/// packed instead of one that is built here.
pub(crate) fn run(target: &str, built: Option<&Path>, only: &[ArtifactKind]) -> Result<()> {
    let release = Release::prepare(target)?;
    let path = match built {
        Some(path) => path.to_owned(),
        None => binary::build(&Console::Terminal, &release)?,
    };
    let command = binary::load(&release, &path)?;
    let third_party = third_party::collect(&release)?;
    let parts = ReleaseParts {
        release,
        command,
        third_party,
    };
    let is_wanted = |kind: &ArtifactKind| only.is_empty() || only.contains(kind);
    let kinds = ArtifactKind::ALL.into_iter().filter(is_wanted);
    let made: Vec<PathBuf> = kinds.map(|kind| kind.make(&parts)).collect::<Result<_>>()?;
    checksum::write(&parts.release, &made)?;
    self_test::run(&parts.release, &made)?;
    size::print_shares(&parts.release);
    check_sizes(&parts, &made)?;
    println!("{}", parts.release.folder.display());
    Ok(())
}

fn check_sizes(parts: &ReleaseParts, made: &[PathBuf]) -> Result<()> {
    check_size(&parts.command.path, COMMAND_LIMIT)?;
    let mut images = made
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "tar"));
    images.try_for_each(|path| check_size(path, IMAGE_LIMIT))
}

/// Builds the wheel for this machine into a folder, as it ships but without the command.
pub(crate) fn build_own_wheel(console: &Console, folder: &Path) -> Result<PathBuf> {
    wheel::build(console, &describe_own()?, folder)
}

/// Builds the command for this machine as it ships, and returns where it is.
pub(crate) fn build_own_command(console: &Console) -> Result<String> {
    let path = binary::build(console, &describe_own()?)?;
    Ok(path.display().to_string())
}

fn describe_own() -> Result<Release> {
    let mut targets = TARGETS.iter();
    let own = targets.find(|names| names.architecture == std::env::consts::ARCH);
    Release::describe(own.context("nothing ships for this machine")?.rust)
}

impl Release {
    /// Returns what is said of a release for a target.
    fn describe(target: &str) -> Result<Release> {
        let Some(target) = TARGETS.iter().find(|names| names.rust == target) else {
            let known: Vec<&str> = TARGETS.iter().map(|names| names.rust).collect();
            bail!(
                "no packages are made for {target}; there are {}",
                known.join(", ")
            );
        };
        Ok(Release {
            version: workspace_version()?,
            target,
            date: source_date()?,
            folder: shell::target_folder().join("artifacts").join(target.rust),
        })
    }

    /// Returns it with a folder that is empty.
    fn prepare(target: &str) -> Result<Release> {
        let release = Release::describe(target)?;
        let folder = &release.folder;
        if folder.exists() {
            fs::remove_dir_all(folder).context("could not clear the folder of artifacts")?;
        }
        fs::create_dir_all(folder).context("could not create the folder of artifacts")?;
        Ok(release)
    }

    fn is_native(&self) -> bool {
        self.target.architecture == std::env::consts::ARCH
    }

    /// Returns how the command is started on this machine.
    fn program_start(&self) -> ProgramStart {
        let (emulator, package) = self.target.emulator;
        if self.is_native() {
            return ProgramStart::Native;
        }
        match shell::quiet_output("which", &[emulator]) {
            Some(path) => ProgramStart::Emulated(path.trim().to_owned()),
            None => ProgramStart::Impossible(package),
        }
    }

    /// Writes an artifact and returns where it is.
    fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self
            .folder
            .join(format!("compactctl-{}-{name}", self.version));
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// Returns the version that all crates have.
pub(crate) fn workspace_version() -> Result<String> {
    let metadata = cargo_metadata(&["--no-deps"])?;
    let packages = metadata.get("packages").and_then(|value| value.as_array());
    let mut packages = packages.into_iter().flatten();
    let command = packages.find(|package| text_field(package, "name") == "compactctl");
    let command = command.context("the workspace has no crate compactctl")?;
    Ok(text_field(command, "version"))
}

/// Returns the date of the commit, unless `SOURCE_DATE_EPOCH` says another.
fn source_date() -> Result<u64> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let date = match given {
        Some(date) => date,
        None => shell::output("git", &["log", "-1", "--format=%ct"])?,
    };
    let date = date.trim();
    date.parse()
        .with_context(|| format!("{date} is no date in seconds"))
}

fn check_size(path: &Path, limit: u64) -> Result<()> {
    let size = fs::metadata(path)?.len();
    let (name, megabytes) = (path.display(), size as f64 / 1e6);
    println!(
        "{name}: {megabytes:.1} MB, of at most {}",
        limit / 1_000_000
    );
    if size > limit {
        bail!("{name} has {size} bytes; {limit} are allowed");
    }
    Ok(())
}
