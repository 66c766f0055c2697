use std::path::Path;

use compact_eval::example;

/// `cargo xtask examples` brings the folder up to date.
#[test]
fn the_committed_examples_are_what_the_generator_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in example::all() {
        let committed = std::fs::read_to_string(folder.join(file.name)).unwrap_or_default();
        assert!(
            committed == file.content,
            "examples/{} is out of date: cargo xtask examples",
            file.name
        );
    }
}
