//! The command as it ships: optimised, stripped, static, and without a path of the machine that built it; with
//! the completions and the manual page that it prints itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::tarball::TarEntry;
use super::{ProgramStart, Release, size};
use crate::shell::{self, Console, FULL};

/// Shells, and the file that each finds its completions in, below `/usr/share`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/compactctl"),
    ("zsh", "zsh/vendor-completions/_compactctl"),
    ("fish", "fish/vendor_completions.d/compactctl.fish"),
];

/// Functions with the same code are kept once, and an address that the loader has to mend takes a bit instead of 24 bytes,
/// which a C library can do since glibc 2.36. Only LLVM's linker can do both.
const LINKER_FLAGS: [&str; 3] = [
    "-Clink-arg=-fuse-ld=lld",
    "-Clink-arg=-Wl,--icf=all",
    "-Clink-arg=-Wl,-z,pack-relative-relocs",
];

/// A command that was built.
pub(super) struct BuiltCommand {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// Where each text belongs below `/usr/share`, and the text.
    pub(super) texts: Vec<(String, Vec<u8>)>,
}

/// Builds it for a target and returns where it is.
pub(super) fn build(console: &Console, release: &Release) -> Result<PathBuf> {
    check_compilers(release)?;
    let target = release.target.rust;
    let map = size::map_argument(release)?;
    let linkers = linker_folder()?;
    let arguments = [
        &["rustc", "--locked", "--profile", "dist", "--target", target][..],
        &["--package", "compactctl", "--bin", "compactctl"],
        &["--features", FULL, "--"],
        // Only the command is static: what it is made of is compiled once, for the wheel too.
        &["-C", "target-feature=+crt-static", &map],
        &LINKER_FLAGS,
    ];
    let variables = reproducible_variables(release);
    let variables = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    // As a variable, since cargo names what it builds by the arguments.
    let variables: Vec<_> = variables
        .chain([("COMPILER_PATH", linkers.as_str())])
        .collect();
    console.run("cargo", &arguments.concat(), &variables)?;
    Ok(build_folder().join(target).join("dist/compactctl"))
}

/// Returns where Rust has LLVM's linker under the name by which a compiler for C starts it.
fn linker_folder() -> Result<String> {
    let root = shell::output("rustc", &["--print", "sysroot"])?;
    let host = shell::output("rustc", &["--print", "host-tuple"])?;
    Ok(format!(
        "{}/lib/rustlib/{}/bin/gcc-ld",
        root.trim(),
        host.trim()
    ))
}

/// Fails when there is no standard library or no compiler for the target, with the command that gets it.
fn check_compilers(release: &Release) -> Result<()> {
    let target = release.target.rust;
    let library = shell::output("rustc", &["--print", "target-libdir", "--target", target])?;
    ensure!(
        Path::new(library.trim()).exists(),
        "Rust has no standard library for {target} here; get it with `rustup target add {target}`"
    );
    let (compiler, package) = release.target.compiler;
    ensure!(
        release.is_native() || shell::run_succeeds(compiler, &["--version"]),
        "there is no {compiler} here to build for {target}; get it with `apt-get install {package}`"
    );
    Ok(())
}

/// Takes a command that is there, and has it print its texts if it runs here.
pub(super) fn load(release: &Release, path: &Path) -> Result<BuiltCommand> {
    let bytes = std::fs::read(path).with_context(|| format!("{} is missing", path.display()))?;
    check_static(&path.display().to_string())?;
    let texts = print_texts(release, &path.display().to_string())?;
    Ok(BuiltCommand {
        path: path.to_owned(),
        bytes,
        texts,
    })
}

/// Returns where what ships is built: flags that differ from those of a usual build would rebuild that each time.
pub(super) fn build_folder() -> PathBuf {
    shell::target_folder().join("dist")
}

/// Returns the variables that make a build the same on every machine.
pub(super) fn reproducible_variables(release: &Release) -> Vec<(String, String)> {
    let places = [
        (shell::repo_root().display().to_string(), "/compact"),
        (cargo_home(), "/cargo"),
    ];
    let rust = places
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let c = places
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    let c: Vec<String> = c.collect();
    let underscored = release.target.rust.replace('-', "_");
    let set = |name: &str, value: String| (name.to_owned(), value);
    let linker = format!("CARGO_TARGET_{}_LINKER", underscored.to_uppercase());
    let (compiler, _) = release.target.compiler;
    let foreign = (!release.is_native()).then(|| set(&linker, compiler.to_owned()));
    let always = [
        // Separated by a character that no path holds.
        set(
            "CARGO_ENCODED_RUSTFLAGS",
            rust.collect::<Vec<_>>().join("\x1f"),
        ),
        set(&format!("CFLAGS_{underscored}"), c.join(" ")),
        set("CARGO_TARGET_DIR", build_folder().display().to_string()),
        set("SOURCE_DATE_EPOCH", release.date.to_string()),
    ];
    always.into_iter().chain(foreign).collect()
}

fn cargo_home() -> String {
    let home = || Some(format!("{}/.cargo", std::env::var("HOME").ok()?));
    std::env::var("CARGO_HOME")
        .ok()
        .or_else(home)
        .unwrap_or_else(|| "/root/.cargo".to_owned())
}

/// Checks that the system's loader has nothing to load for it.
fn check_static(path: &str) -> Result<()> {
    let Ok(output) = Command::new("ldd").arg(path).output() else {
        println!("not checked: there is no ldd to ask whether the command is static");
        return Ok(());
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let is_static = ["statically linked", "not a dynamic executable"]
        .iter()
        .any(|phrase| text.contains(phrase));
    if !is_static {
        bail!("{path} needs libraries of the system\n{text}");
    }
    Ok(())
}

/// Has the command print its manual page and its completions; without an emulator, a foreign one prints none.
fn print_texts(release: &Release, path: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let line = match release.program_start() {
        ProgramStart::Native => vec![path.to_owned()],
        ProgramStart::Emulated(emulator) => vec![emulator, path.to_owned()],
        ProgramStart::Impossible(package) => {
            println!("left out: the manual page and the completions (`apt-get install {package}`)");
            return Ok(Vec::new());
        }
    };
    let print = |arguments: &[&str]| {
        let mut words = line.iter().map(String::as_str);
        let program = words.next().unwrap_or(path);
        let all: Vec<&str> = words.chain(arguments.iter().copied()).collect();
        shell::output(program, &all).map(String::into_bytes)
    };
    let mut texts = vec![("man/man1/compactctl.1".to_owned(), print(&["man"])?)];
    for (shell, place) in SHELLS {
        texts.push((place.to_owned(), print(&["completions", shell])?));
    }
    Ok(texts)
}

impl BuiltCommand {
    /// Returns the command and its texts where a system keeps them.
    pub(super) fn system_entries(&self) -> Vec<TarEntry> {
        let texts = self
            .texts
            .iter()
            .map(|(place, text)| TarEntry::file(format!("usr/share/{place}"), text.clone()));
        let command = TarEntry::program("usr/bin/compactctl", self.bytes.clone());
        std::iter::once(command).chain(texts).collect()
    }
}
