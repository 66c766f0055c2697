//! Each artifact, installed by what people install it with and used in a root that holds nothing else: no network, no
//! libraries, no home. The wheel's root has the interpreter and the libraries of the system beside it; what is made for
//! another machine runs in an emulator.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::checksum::sha256;
use super::{ProgramStart, Release};
use crate::shell;

/// The session that is compacted.
const SESSION: &str = "examples/coding-session.jsonl";

/// Makes a root of one's own out of a folder, with what else is to be seen in it, and runs a program there.
const ENTER: &str = r#"root=$1; shift
mkdir -p "$root/proc" "$root/tmp" "$root/home" && mount --rbind /proc "$root/proc" || exit 99
for place in $SEEN; do
    [ -e "$place" ] || continue
    mkdir -p "$root$place" && mount --rbind -o ro "$place" "$root$place" || exit 99
done
exec env -i HOME=/home TMPDIR=/tmp PATH=/usr/sbin:/usr/bin:/bin chroot "$root" "$@""#;

/// Where a root has the program that runs those of other machines.
const EMULATOR: &str = "/emulator";

/// What a Python needs of the system.
const SYSTEM_FOLDERS: &str = "/usr /lib /lib64 /bin";

/// What the package is tried with.
const IMPORT: &str = r#"
from compact import CompactConfig, CompactManager, FileStorage
manager = CompactManager(CompactConfig(model="gpt-5", storage=FileStorage("/home/archive")))
messages = [{"role": "user", "content": "Port the parser."}]
assert manager.preflight("s", messages) == messages
"#;

/// Tests everything that was made.
pub(super) fn run(release: &Release, made: &[PathBuf]) -> Result<()> {
    let Some(flags) = namespace_flags() else {
        let words = "no artifact was tested: no namespace can be made here";
        ensure!(!shell::is_ci(), "{words}, and CI is set");
        println!("{words}");
        return Ok(());
    };
    let start = release.program_start();
    if let ProgramStart::Impossible(package) = start {
        let target = release.target.rust;
        println!("not tested: {target} does not run on this machine (`apt-get install {package}`)");
        return Ok(());
    }
    for path in made {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let root = CleanRoot::make(flags, &start)?;
        let tested = test_artifact(release, path, &root)
            .with_context(|| format!("{name} does not work in a clean root"))?;
        println!("{} {name}", if tested { "works  " } else { "no test" });
    }
    Ok(())
}

/// Tests one artifact; false for what nobody installs or what cannot be installed here.
fn test_artifact(release: &Release, path: &Path, root: &CleanRoot) -> Result<bool> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = path.display().to_string();
    if name.ends_with(".tar.gz") {
        tar::Archive::new(GzDecoder::new(fs::File::open(path)?)).unpack(&root.folder)?;
        let folder = format!("/compactctl-{}-{}", release.version, release.target.rust);
        return root
            .try_command(&format!("{folder}/compactctl"))
            .map(|()| true);
    }
    if name.ends_with(".deb") {
        return install_deb(&file, root);
    }
    if name.ends_with(".tgz") {
        return install_npm(&file, root);
    }
    if name.ends_with(".tar") {
        unpack_image(path, &root.folder)?;
        return root.try_command("/usr/bin/compactctl").map(|()| true);
    }
    if name.ends_with(".whl") {
        return install_wheel(release, path, root);
    }
    let sbom: Value = serde_json::from_slice(&fs::read(path)?)?;
    let components = sbom.get("components").and_then(Value::as_array);
    ensure!(
        components.is_some_and(|list| list.len() > 50),
        "it lists nothing"
    );
    Ok(true)
}

fn install_deb(file: &str, root: &CleanRoot) -> Result<bool> {
    if !shell::is_root() || !shell::run_succeeds("dpkg", &["--version"]) {
        return Ok(false);
    }
    let state = root.folder.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(state.join(folder))?;
    }
    fs::write(state.join("status"), "")?;
    let place = format!("--root={}", root.folder.display());
    let dpkg = ["--force-architecture", "--log=/dev/null", "--install"];
    shell::run("dpkg", &[&[place.as_str()], &dpkg[..], &[file]].concat())?;
    root.try_command("/usr/bin/compactctl").map(|()| true)
}

fn install_npm(file: &str, root: &CleanRoot) -> Result<bool> {
    if !shell::run_succeeds("npm", &["--version"]) {
        return Ok(false);
    }
    let place = root.folder.display().to_string();
    let npm = [
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--silent",
        "--force",
    ];
    shell::run("npm", &[&npm[..], &["--prefix", &place, file]].concat())?;
    root.try_command("/node_modules/.bin/compactctl")
        .map(|()| true)
}

/// Installs the wheel with pip. There is no Python of another machine: then its script alone is tried.
fn install_wheel(release: &Release, wheel: &Path, root: &CleanRoot) -> Result<bool> {
    if !release.is_native() {
        let (from, to) = (
            wheel.display().to_string(),
            root.folder.display().to_string(),
        );
        shell::run("python3", &["-m", "zipfile", "-e", &from, &to])?;
        let script = format!(
            "compact_context-{}.data/scripts/compactctl",
            release.version
        );
        shell::run(
            "chmod",
            &["+x", &root.folder.join(&script).display().to_string()],
        )?;
        return root.try_command(&format!("/{script}")).map(|()| true);
    }
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    fs::copy(wheel, root.folder.join(&*name))?;
    let base = shell::output("python3", &["-c", "import sys; print(sys.base_prefix)"])?;
    let base = base.trim();
    let seen = format!("{SYSTEM_FOLDERS} {base}");
    let python = format!("{base}/bin/python3");
    root.run(&seen, &[&python, "-m", "venv", "/venv"])?;
    let file = format!("/{name}");
    let pip = ["-m", "pip", "install", "--quiet", "--no-index", &file];
    root.run(&seen, &[&["/venv/bin/python"], &pip[..]].concat())?;
    root.run(&seen, &["/venv/bin/python", "-c", IMPORT])?;
    root.try_command("/venv/bin/compactctl").map(|()| true)
}

/// Unpacks an image as a runtime does: by the hashes that its index names.
fn unpack_image(image: &Path, root: &Path) -> Result<()> {
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(fs::File::open(image)?);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.display().to_string();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(path, content);
    }
    let find = |described: Option<&Value>| {
        let digest = described.and_then(|value| value.get("digest")?.as_str());
        let digest = digest.and_then(|digest| digest.strip_prefix("sha256:"));
        let digest = digest.context("the image names no digest")?;
        let content = files.get(&format!("blobs/sha256/{digest}"));
        let content = content.with_context(|| format!("{digest} is not in the image"))?;
        ensure!(sha256(content) == digest, "{digest} has other content");
        Ok(content)
    };
    let index = files.get("index.json").context("the image has no index")?;
    let index: Value = serde_json::from_slice(index)?;
    let manifest: Value = serde_json::from_slice(find(index.pointer("/manifests/0"))?)?;
    let config: Value = serde_json::from_slice(find(manifest.get("config"))?)?;
    let mut files = Vec::new();
    GzDecoder::new(find(manifest.pointer("/layers/0"))?.as_slice()).read_to_end(&mut files)?;
    let expected = config.pointer("/rootfs/diff_ids/0").and_then(Value::as_str);
    ensure!(
        expected == Some(&format!("sha256:{}", sha256(&files))),
        "the layer is another"
    );
    tar::Archive::new(files.as_slice()).unpack(root)?;
    Ok(())
}

/// Returns how a program gets mounts and a network of its own.
fn namespace_flags() -> Option<&'static str> {
    let works = |flags: &&str| {
        let trial = [flags, "mount", "-t", "tmpfs", "t", "/mnt"];
        shell::run_succeeds("unshare", &trial)
    };
    ["-mn", "-rmn"].into_iter().find(works)
}

/// A folder that programs see as the root of everything; it is removed when it is dropped.
struct CleanRoot {
    folder: PathBuf,
    flags: &'static str,
    /// What comes before the command.
    around: &'static [&'static str],
}

impl Drop for CleanRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl CleanRoot {
    fn make(flags: &'static str, start: &ProgramStart) -> Result<CleanRoot> {
        let folder = std::env::temp_dir().join(format!("compact-root-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let around: &[&str] = match start {
            ProgramStart::Emulated(program) => {
                fs::copy(program, folder.join(EMULATOR.trim_start_matches('/')))?;
                &[EMULATOR]
            }
            _ => &[],
        };
        Ok(CleanRoot {
            folder,
            flags,
            around,
        })
    }

    /// Runs a program in it, with the folders of the system that it may see; returns what it prints.
    fn run(&self, seen: &str, line: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new("unshare")
            .args([self.flags, "sh", "-c", ENTER, "sh"])
            .arg(&self.folder)
            .args(line)
            .env("SEEN", seen)
            .output()
            .context("could not start unshare")?;
        if !output.status.success() {
            bail!(
                "`{}` failed ({})\n{}{}",
                line.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(output.stdout)
    }

    /// Tries what a new user does: check, compact, restore, have an agent call us.
    fn try_command(&self, program: &str) -> Result<()> {
        let original = fs::read(shell::repo_root().join(SESSION)).context(SESSION)?;
        fs::write(self.folder.join("session.jsonl"), &original)?;
        let run = |arguments: &[&str]| self.run("", &[self.around, &[program], arguments].concat());
        run(&["doctor"])?;
        let receipt = run(&["compact", "/session.jsonl", "-o", "/view.jsonl", "--json"])?;
        let receipt: Value = serde_json::from_slice(&receipt)?;
        let id = receipt.get("receipt_id").and_then(Value::as_str);
        let id = id.context("the receipt has no id")?;
        let view = fs::metadata(self.folder.join("view.jsonl"))?.len();
        ensure!(
            view > 0 && view < original.len() as u64,
            "the view is not smaller"
        );
        let restored = run(&["restore", id])?;
        ensure!(
            restored == original,
            "what was restored is not the original"
        );
        run(&["hook", "install", "--agent", "claude-code"])?;
        let settings = self.folder.join("home/.claude/settings.json");
        let settings = fs::read_to_string(settings).context("no hook was installed")?;
        ensure!(
            settings.contains("compactctl"),
            "the hook does not call the command"
        );
        Ok(())
    }
}
