//! Names of repositories.

use std::path::Path;

use super::shelf::repository_key;

/// S0-45, S0-47, S0-48.
#[test]
fn s0_48_the_key_of_a_repository_is_its_path() {
    let key = |path: &str| repository_key(Path::new(path));
    assert_eq!(key("/home/cyou/mala"), "-home-cyou-mala");
    assert_ne!(key("/home/a-b/c"), key("/home/a/b-c"));
    assert_ne!(key("/home/a/b"), key("/home/a-b"));
    let odd = [
        key(""),
        key("/"),
        key("/a b"),
        key("/ü/../x"),
        key(&"/deep".repeat(200)),
    ];
    for name in odd {
        assert!(
            !name.is_empty() && name.len() < 200 && !name.contains('/'),
            "{name}"
        );
    }
}
