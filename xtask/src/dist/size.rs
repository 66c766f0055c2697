//! Where the bytes of the command are: the linker's map, summed by crate.
//!
//! The command is stripped, so it cannot be asked. Only the map of LLVM's linker is read, which is what Rust links
//! with where nothing else is chosen; after another linker nothing is said.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;

use super::Release;
use crate::shell;

/// How many crates are named.
const SHOWN: usize = 16;

/// Where the map is, from the root of the repository: cargo names what it builds by the arguments too, so a path of
/// this machine would change the bytes.
fn map_place(release: &Release) -> String {
    format!("target/{}.map", release.target.rust)
}

/// Returns the argument by which the linker writes the map.
pub(super) fn map_argument(release: &Release) -> Result<String> {
    fs::create_dir_all(shell::repo_root().join("target"))?;
    Ok(format!("-Clink-arg=-Wl,-Map={}", map_place(release)))
}

/// Prints which crates the bytes of the last build belong to.
pub(super) fn print_shares(release: &Release) {
    let map = fs::read(shell::repo_root().join(map_place(release))).unwrap_or_default();
    let shares = sum_shares(&String::from_utf8_lossy(&map));
    let total: u64 = shares.iter().map(|(_, size)| size).sum();
    for (owner, size) in shares.iter().take(SHOWN) {
        let (megabytes, share) = (*size as f64 / 1e6, *size as f64 / total as f64);
        println!("{megabytes:>7.2} MB {:>5.1} %  {owner}", share * 100.0);
    }
}

/// Returns what each owner has in the program, the largest first.
fn sum_shares(map: &str) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (size, place) in map.lines().filter_map(parse_row) {
        *sums.entry(find_owner(place)).or_default() += size;
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}

/// Returns the size of a part of an object that is loaded, and the object and the part: `0 0 1f 4 FILE:(.text.NAME)`.
fn parse_row(line: &str) -> Option<(u64, &str)> {
    let mut rest = line.trim_start();
    let mut numbers = [0; 4];
    for number in &mut numbers {
        let (word, after) = rest.split_once(' ')?;
        *number = u64::from_str_radix(word, 16).ok()?;
        rest = after.trim_start();
    }
    let [address, _, size, _] = numbers;
    let is_part = rest.contains(":(") && rest.ends_with(')');
    (address > 0 && is_part).then_some((size, rest))
}

/// Returns the crate of a part, or the library that its object comes from.
fn find_owner(place: &str) -> String {
    let (object, part) = place.rsplit_once(":(").unwrap_or((place, ""));
    let part = part.trim_end_matches(')');
    if let Some(name) = crate_of_symbol(part) {
        return name;
    }
    let file = object.split_once(".rlib(").map_or(object, |(file, _)| file);
    let file = file.rsplit('/').next().unwrap_or(file);
    let name = file.strip_prefix("lib").unwrap_or(file);
    let name = name.split(['-', '.', '(']).next();
    match name.unwrap_or_default() {
        // All Rust is one object after link-time optimisation.
        "compactctl" | "<internal>" => match part.split(['.', '+']).nth(1).unwrap_or(part) {
            "rodata" | "data" => "constants: vocabularies, models, texts".to_owned(),
            "eh_frame" | "eh_frame_hdr" => "unwinding".to_owned(),
            kind => kind.to_owned(),
        },
        "c" | "m" | "gcc_eh" | "gcc" => "C library".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the crate that a mangled name begins with.
fn crate_of_symbol(part: &str) -> Option<String> {
    if let Some((_, name)) = part.split_once("_RNv").or_else(|| part.split_once("_RIN")) {
        let (_, after) = name.split_once("Cs")?;
        return take_counted(after.split_once('_')?.1);
    }
    let (_, name) = part.split_once("_ZN")?;
    let first = take_counted(name)?;
    // A trait's method: the type's path stands in the first part.
    let path = first.split("$LT$").last().unwrap_or(&first);
    let path = path.trim_start_matches(['_', '$', '.']);
    let path = path.rsplit("$u20$").next().unwrap_or(path);
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = path.get(..end.unwrap_or(path.len()))?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Takes as many characters as the number before them says.
fn take_counted(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, rest) = text.split_at_checked(digits)?;
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    Some(rest.get(..count.parse().ok()?)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::sum_shares;

    #[test]
    fn parts_are_summed_by_crate_and_library() {
        let map = "\
             VMA              LMA     Size Align Out     In      Symbol
          400000           400000       40    16 .text
          400000           400000       10    16         /t/compactctl-1.rcgu.o:(.text._ZN12compact_core4plan17h0E)
          400000           400000       10     1                 compact_core::plan
          400010           400010        f    16         /t/compactctl-1.rcgu.o:(.text._RNvNtCs9hF_12compact_core4plan5frame)
          400020           400020       20    16         /t/liblibsqlite3_sys-2.rlib(sqlite3.o):(.text.sqlite3_open)
          400040           400040        8     1         /t/compactctl-1.rcgu.o:(.rodata..L__unnamed_7)
          400050           400050        4     1         <internal>:(.eh_frame+0x1f)
               0                0      999     1         /t/compactctl-1.rcgu.o:(.debug_info)
";
        let row = |name: &str, size| (name.to_owned(), size);
        let expected = [
            row("libsqlite3_sys", 32),
            row("compact_core", 31),
            row("constants: vocabularies, models, texts", 8),
            row("unwinding", 4),
        ];
        assert_eq!(sum_shares(map), expected);
    }
}
