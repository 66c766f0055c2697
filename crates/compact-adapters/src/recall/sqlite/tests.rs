use compact_runtime::port::index::conformance::{self, sample_addition, sample_entry};
use tempfile::TempDir;

use super::*;

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("data/recall.db")
}

fn lookup(term: &str) -> IndexLookup {
    IndexLookup {
        terms: vec![term.to_owned()],
        limit: 10,
        ..IndexLookup::default()
    }
}

#[tokio::test]
async fn sqlite_conforms() {
    let dir = TempDir::new().unwrap();
    conformance::suite(&SqliteIndex::open(&file(&dir)).unwrap()).await;
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let dir = TempDir::new().unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    let added = sample_addition("s", "r", vec![sample_entry(1, "walrus")]);
    index.add(added).await.unwrap();
    let before = index.find(&lookup("walrus")).await.unwrap();
    drop(index);
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    assert_eq!(index.find(&lookup("walrus")).await.unwrap(), before);
    assert_eq!(before.candidates.len(), 1);
}

#[tokio::test]
async fn a_damaged_file_is_begun_anew() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(file(&dir), "no database at all".repeat(400)).unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    assert_eq!(index.receipts().await.unwrap(), vec![]);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let dir = TempDir::new().unwrap();
    drop(SqliteIndex::open(&file(&dir)).unwrap());
    let connection = Connection::open(file(&dir)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteIndex::open(&file(&dir)).unwrap_err();
    assert!(
        matches!(error, IndexError::Newer { found: 99, .. }),
        "{error}"
    );
}

/// What is forgotten must not be found in the file by other means either.
#[tokio::test]
async fn forgotten_words_are_gone_from_the_file() {
    let dir = TempDir::new().unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    let secret = "xylophonezebra";
    index
        .add(sample_addition("s", "r", vec![sample_entry(1, secret)]))
        .await
        .unwrap();
    index
        .add(sample_addition("t", "r", vec![sample_entry(1, "walrus")]))
        .await
        .unwrap();
    let holds = |needle: &str| {
        let connection = Connection::open(file(&dir)).unwrap();
        connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        let bytes = std::fs::read(file(&dir)).unwrap();
        bytes.windows(needle.len()).any(|w| w == needle.as_bytes())
    };
    assert!(holds(secret));
    index.forget("s").await.unwrap();
    assert!(!holds(secret));
    assert!(holds("walrus"));
}

#[cfg(unix)]
#[tokio::test]
async fn the_index_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    index
        .add(sample_addition("s", "r", vec![sample_entry(1, "walrus")]))
        .await
        .unwrap();
    for name in ["recall.db", "recall.db-wal", "recall.db-shm"] {
        let found = std::fs::metadata(dir.path().join("data").join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
}
