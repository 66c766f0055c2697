use std::process::{Command, Stdio};

use compact_runtime::port::catalog::conformance::{self, ODD_SESSION_IDS, sample_record};
use compact_runtime::port::clock::ManualClock;
use jiff::SignedDuration;
use serde_json::json;
use tempfile::TempDir;

use super::*;

struct Fixture {
    dir: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture {
            dir: TempDir::new().unwrap(),
        }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("data/catalog.db")
    }

    fn open(&self) -> SqliteCatalog {
        SqliteCatalog::open(&self.file()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("data")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn sqlite_conforms() {
    let fixture = Fixture::new();
    let catalog = fixture.open();
    conformance::suite(&catalog).await;
    assert_eq!(
        fixture.names(),
        ["catalog.db", "catalog.db-shm", "catalog.db-wal"]
    );
}

#[tokio::test]
async fn leases_run_out_and_late_writers_are_refused() {
    let (fixture, clock) = (Fixture::new(), Arc::new(ManualClock::default()));
    let catalog = fixture.open().with_clock(clock.clone());
    let wait = async |time| clock.advance(SignedDuration::try_from(time).unwrap());
    conformance::lease_suite(&catalog, wait).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_blocks_no_session() {
    let (fixture, clock) = (Fixture::new(), Arc::new(ManualClock::default()));
    let catalog = fixture.open().with_clock(clock.clone());
    let set_back = async |time| clock.advance(-SignedDuration::try_from(time).unwrap());
    conformance::set_back_suite(&catalog, set_back).await;
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let fixture = Fixture::new();
    let attempt = Attempt {
        at: "2026-01-02T03:04:05Z".to_owned(),
        turn: "t".to_owned(),
        outcome: "failed".to_owned(),
        tokens: 9,
    };
    let catalog = fixture.open();
    for id in ODD_SESSION_IDS {
        catalog.save_record(&sample_record(id, "r")).await.unwrap();
        catalog.save_attempt(id, &attempt).await.unwrap();
        catalog.save_event(id, &json!({"n": 1})).await.unwrap();
    }
    drop(catalog);
    let catalog = fixture.open();
    for id in ODD_SESSION_IDS {
        assert_eq!(
            catalog.latest_record(id).await.unwrap(),
            Some(sample_record(id, "r"))
        );
        assert_eq!(
            catalog.last_attempt(id).await.unwrap(),
            Some(attempt.clone())
        );
        assert_eq!(catalog.events(id).await.unwrap(), [json!({"n": 1})]);
    }
    let sessions = catalog.sessions().await.unwrap();
    assert_eq!(sessions.len(), ODD_SESSION_IDS.len());
}

/// Whoever sends a catalog can put a view in the place of a table, which is computed when it is read.
#[test]
fn a_catalog_that_computes_what_it_holds_is_refused_before_it_is_read() {
    for schema in [
        "PRAGMA legacy_alter_table = ON; ALTER TABLE sessions RENAME TO kept; CREATE VIEW sessions AS \
         WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'n' || x AS name FROM n",
        "ALTER TABLE events ADD COLUMN more TEXT AS (hex(zeroblob(500000000)))",
    ] {
        let fixture = Fixture::new();
        drop(fixture.open());
        let hostile = Connection::open(fixture.file()).unwrap();
        hostile.execute_batch(schema).unwrap();
        drop(hostile);
        for open in [SqliteCatalog::open, SqliteCatalog::open_to_read] {
            let error = open(&fixture.file()).err().unwrap();
            let reason = "it holds views or computed columns, which nothing here makes";
            assert!(
                matches!(&error, CatalogError::Damaged { reason: found, .. } if found.contains(reason)),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_record_is_stored_whole_or_not_at_all() {
    let fixture = Fixture::new();
    let catalog = fixture.open();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON receipts \
         BEGIN SELECT raise(ABORT, 'refused'); END";
    catalog
        .connection
        .lock()
        .unwrap()
        .execute_batch(refuse)
        .unwrap();
    let error = catalog
        .save_record(&sample_record("s", "r"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("cannot write to catalog /"),
        "{error}"
    );
    assert_eq!(catalog.sessions().await.unwrap(), vec![]);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let fixture = Fixture::new();
    drop(fixture.open());
    let connection = Connection::open(fixture.file()).unwrap();
    connection
        .pragma_update(None, "user_version", schema::KNOWN_VERSION + 1)
        .unwrap();
    let error = SqliteCatalog::open(&fixture.file()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "catalog {} has schema {}, this version knows up to {}: upgrade Compact or set \
             COMPACT_STORAGE_PATH to another directory",
            fixture.file().display(),
            schema::KNOWN_VERSION + 1,
            schema::KNOWN_VERSION
        )
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let fixture = Fixture::new();
    drop(fixture.open());
    std::fs::write(fixture.file(), "not a database at all ".repeat(100)).unwrap();
    let error = SqliteCatalog::open(&fixture.file()).unwrap_err();
    assert!(matches!(error, CatalogError::Damaged { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains(&*fixture.file().to_string_lossy()),
        "{message}"
    );
    assert!(message.contains("rebuild it from the archive"), "{message}");
}

#[tokio::test]
async fn a_damaged_page_or_value_is_named() {
    let fixture = Fixture::new();
    let catalog = fixture.open();
    for n in 0..50 {
        catalog
            .save_record(&sample_record("s", &format!("receipt-{n}")))
            .await
            .unwrap();
    }
    let garble = "UPDATE receipts SET receipt = '{broken' WHERE receipt_id = 'receipt-7'";
    catalog
        .connection
        .lock()
        .unwrap()
        .execute_batch(garble)
        .unwrap();
    let error = catalog.find_record("receipt-7").await.unwrap_err();
    assert!(matches!(error, CatalogError::Damaged { .. }), "{error}");
    assert!(catalog.find_record("receipt-8").await.unwrap().is_some());
    drop(catalog);
    let mut bytes = std::fs::read(fixture.file()).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(fixture.file(), bytes).unwrap();
    let catalog = SqliteCatalog::open(&fixture.file());
    let error = match catalog {
        Err(error) => error,
        Ok(catalog) => catalog.session_records("s").await.unwrap_err(),
    };
    assert!(matches!(error, CatalogError::Damaged { .. }), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_database_and_its_log_are_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let fixture = Fixture::new();
    let catalog = fixture.open();
    catalog.save_record(&sample_record("s", "r")).await.unwrap();
    assert_eq!(mode(&fixture.dir.path().join("data")), 0o700);
    assert_eq!(fixture.names().len(), 3);
    for name in fixture.names() {
        assert_eq!(
            mode(&fixture.dir.path().join("data").join(&name)),
            0o600,
            "{name}"
        );
    }
}

const SHARED_FILE: &str = "COMPACT_TEST_SHARED_CATALOG";

/// Does its work only when [`processes_share_a_catalog`] starts it with a file to write to.
#[tokio::test]
async fn process_that_shares_a_catalog() {
    let Some(file) = std::env::var_os(SHARED_FILE) else {
        return;
    };
    let catalog = SqliteCatalog::open(Path::new(&file)).unwrap();
    for n in 0..20 {
        let receipt = format!("{}-{n}", std::process::id());
        catalog
            .save_record(&sample_record("shared", &receipt))
            .await
            .unwrap();
        catalog.latest_record("shared").await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn processes_share_a_catalog() {
    let fixture = Fixture::new();
    let this = std::env::current_exe().unwrap();
    let start = |_| {
        Command::new(&this)
            .args([
                "--exact",
                "catalog::sqlite::tests::process_that_shares_a_catalog",
            ])
            .env(SHARED_FILE, fixture.file())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    // All of them find no database and create it at once.
    let children: Vec<_> = (0..4).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(
        fixture
            .open()
            .session_records("shared")
            .await
            .unwrap()
            .len(),
        4 * 20
    );
}

#[test]
fn a_disk_that_takes_no_more_is_said_to_be_full() {
    use rusqlite::ffi;
    let explained = |code| {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let error = explain_sqlite_error(Path::new("catalog.db"), "open", error);
        error.to_string() + &format!("{error:?}")
    };
    for code in [
        ffi::SQLITE_FULL,
        ffi::SQLITE_IOERR_SHMSIZE,
        ffi::SQLITE_IOERR_WRITE,
    ] {
        assert!(explained(code).contains("the disk may be full"), "{code}");
    }
    assert!(!explained(ffi::SQLITE_IOERR_READ).contains("full"));
}
