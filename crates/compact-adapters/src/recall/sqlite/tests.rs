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

/// Short texts share a frame, and a long one has more than a frame holds: each is read as it was added.
#[tokio::test]
async fn texts_of_all_lengths_are_read_back() {
    let dir = TempDir::new().unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    let text = |n: u64| format!("walrus {n}: {}", "ä filler ".repeat((n * n * n) as usize));
    for session in ["a", "b"] {
        let entries = (0..30).map(|n| sample_entry(n, &text(n))).collect();
        let added = sample_addition(session, "r", entries);
        index.add(added).await.unwrap();
    }
    index.forget("a").await.unwrap();
    let more = vec![sample_entry(30, "walrus again"), sample_entry(3, &text(3))];
    index.add(sample_addition("b", "s", more)).await.unwrap();
    let mut found = index.find(&lookup_all("walrus")).await.unwrap().candidates;
    found.sort_by_key(|candidate| candidate.ordinal);
    let found: Vec<String> = found.iter().map(|c| c.text.to_string()).collect();
    let mut want: Vec<String> = (0..30).map(text).collect();
    want.push("walrus again".to_owned());
    assert_eq!(found, want);
}

fn lookup_all(term: &str) -> IndexLookup {
    IndexLookup {
        limit: 1_000,
        ..lookup(term)
    }
}

/// Entries are taken one by one; an addition of which one cannot be made leaves nothing.
#[tokio::test]
async fn an_addition_that_breaks_off_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    let failed = || IndexError::Store {
        action: "make an entry".to_owned(),
        source: "broken".into(),
    };
    let entries = [Ok(sample_entry(1, "walrus")), Err(failed())];
    let broken = IndexAddition {
        entries: Box::new(entries.into_iter()),
        ..sample_addition("s", "r", Vec::new())
    };
    assert!(index.add(broken).await.is_err());
    assert_eq!(index.receipts().await.unwrap(), vec![]);
    assert_eq!(index.find(&lookup("walrus")).await.unwrap().passages, 0);
}

#[tokio::test]
async fn a_damaged_file_is_begun_anew() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(file(&dir), "no database at all".repeat(400)).unwrap();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    assert_eq!(index.receipts().await.unwrap(), vec![]);
}

/// What an earlier version wrote is drawn again, and its room is not kept for nothing.
#[tokio::test]
async fn an_index_of_an_earlier_schema_is_begun_anew_and_small() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let connection = Connection::open(file(&dir)).unwrap();
    for migration in &MIGRATIONS[..2] {
        connection.execute_batch(migration).unwrap();
    }
    let old = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 1000) \
         INSERT INTO postings SELECT 0, value, zeroblob(1000) FROM n";
    connection.execute_batch(old).unwrap();
    connection
        .execute_batch("INSERT INTO sessions (name) VALUES ('s')")
        .unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    drop(connection);
    let before = std::fs::metadata(file(&dir)).unwrap().len();
    let index = SqliteIndex::open(&file(&dir)).unwrap();
    let added = sample_addition("s", "r", vec![sample_entry(1, "walrus")]);
    index.add(added).await.unwrap();
    assert_eq!(index.find(&lookup("walrus")).await.unwrap().passages, 1);
    drop(index);
    let after = std::fs::metadata(file(&dir)).unwrap().len();
    assert!(after * 4 < before, "{before} to {after}");
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
