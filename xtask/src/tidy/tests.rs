use super::*;

fn source(path: &str, text: &str) -> SourceFile {
    SourceFile::new(path.to_owned(), text)
}

#[test]
fn strings_and_comments_are_no_code() {
    let text = "fn a() { \"fn b() {\"; r#\"fn c() \"}\"#; '\"'; '\\''; }\n// fn d() {}\n/* fn e() {} */\n\
                fn f<'a>(x: &'a str);\n";
    let file = source("crates/x/src/lib.rs", text);
    let found: Vec<_> = file
        .functions()
        .iter()
        .map(|f| (f.name, f.line, f.length))
        .collect();
    assert_eq!(found, [("a", 1, Some(1)), ("f", 4, None)]);
}

#[test]
fn inline_tests_are_left_out() {
    let text = "struct A;\n#[cfg(test)]\nmod tests {\n    // S3-1\n    struct B;\n}\n";
    let file = source("crates/x/src/a.rs", text);
    let names: Vec<_> = file.types().iter().map(|t| t.name).collect();
    assert_eq!((names, file.comments.len()), (vec!["A"], 0));
}

#[test]
fn names_and_numbers_are_found_with_their_lines() {
    let text = "\n// as S2-77 wants\nfn told() {}\nfn run_inner() {}\nfn tell_all() {}\n\
                struct Untold;\nfn is_said() {}\nfn essay() {}\n";
    let file = source("crates/x/src/util.rs", text);
    assert_eq!(
        name_problems(&file),
        [
            "crates/x/src/util.rs:1: `util` says nothing about what is inside",
            "crates/x/src/util.rs:3: `told` is for what an agent or a person said",
            "crates/x/src/util.rs:4: `run_inner`: a second generation replaces the first",
            "crates/x/src/util.rs:5: `tell_all` is for what an agent or a person said",
            "crates/x/src/util.rs:6: `Untold` is for what an agent or a person said",
        ]
    );
    assert_eq!(
        number_problems(&file),
        ["crates/x/src/util.rs:2: the number of a requirement belongs into docs/requirements.toml"]
    );
    assert!(!has_number("// SHA-256, UTF-8, C-311054x and CP-1252"));
}

#[test]
fn names_in_python_are_found_with_their_lines() {
    let text =
        "class Told:\n    async def tell_lines(self): ...\n\ndef encode(told): ...\n# def say()\n";
    assert_eq!(
        python::problems_in("python/compact/wire.py", text),
        [
            "python/compact/wire.py:1: `Told` is for what an agent or a person said",
            "python/compact/wire.py:2: `tell_lines` is for what an agent or a person said",
        ]
    );
}

#[test]
fn twins_are_types_of_one_crate() {
    let files = [
        source("crates/x/src/a.rs", "pub(crate) struct Line;\n"),
        source("crates/x/src/b.rs", "enum Line {}\n"),
        source("crates/y/src/c.rs", "struct Line;\nstruct Row;\n"),
    ];
    assert_eq!(
        twin_types(&files),
        ["crates/x/src/b.rs:1: type `Line` is in crates/x/src/a.rs as well"]
    );
    assert!((shared_type_percent(&files) - 75.0).abs() < 1e-9);
}

#[test]
fn doctests_are_blocks_that_run() {
    let text = "//! ```\n//! a();\n//! ```\n/// ```text\n/// no\n/// ```\n/// ```no_run\n/// b();\n/// ```\nfn f() {}\n";
    assert_eq!(count_doctests(&source("crates/x/src/lib.rs", text)), 2);
}

#[test]
fn edges_and_circles_of_modules_are_compared() {
    let files = [
        source("crates/compact-core/src/lib.rs", "use crate::a;\n"),
        source(
            "crates/compact-core/src/a.rs",
            "use crate::b::B;\n// crate::c\n",
        ),
        source(
            "crates/compact-core/src/b/x.rs",
            "use crate::{a::A, c::{D, E}};\n",
        ),
        source("crates/compact-core/src/c.rs", "\n"),
    ];
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        module::edges(&files),
        [pair("a", "b"), pair("b", "a"), pair("b", "c")]
    );
    let document = "```modules compact-core\na: b\nb: c\nc: a\n```\n";
    let problems = module::module_problems(&files, document);
    for expected in [
        "crates/compact-core/src/b/x.rs:1: `b` uses `a`, which ARCHITECTURE.md does not list for compact-core",
        "ARCHITECTURE.md: `c` of compact-core does not use `a`; remove it from the list",
        "crates/compact-core/src/a.rs:1: `a` → `b` is part of a circle of modules in compact-core",
    ] {
        assert!(problems.iter().any(|p| p == expected), "{problems:#?}");
    }
}
