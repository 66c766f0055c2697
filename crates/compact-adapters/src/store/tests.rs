use std::time::Duration;

use compact_runtime::port::catalog::SessionCatalog;

use super::*;

/// Whichever way a catalog is had, its leases last as configured.
#[tokio::test]
async fn leases_last_as_configured_in_every_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let mut storage = StorageConfig {
        lease_seconds: 7,
        ..StorageConfig::default()
    };
    let embedded = Stores::new(&storage, folder.path()).unwrap();
    let (anew, _) = embedded.open_catalog_to_rebuild().await.unwrap();
    let damaged = Stores::new(&storage, &folder.path().join("damaged")).unwrap();
    fs::create_dir(&damaged.root).unwrap();
    fs::write(damaged.catalog_file(), "no catalog at all ".repeat(99)).unwrap();
    let (mended, aside) = damaged.open_catalog_to_rebuild().await.unwrap();
    assert!(aside.is_some());
    storage.catalog = Some("postgres://nobody@127.0.0.1:1/none".into());
    let shared = Stores::new(&storage, folder.path()).unwrap();
    let times = [
        anew.lease_time(),
        mended.lease_time(),
        embedded.open_catalog_to_read().unwrap().lease_time(),
        shared.shared_catalog().unwrap().lease_time(),
        shared.open_catalog().unwrap().lease_time(),
    ];
    assert_eq!(times, [Duration::from_secs(7); 5]);
}

/// Who only looks leaves nothing behind: an empty catalog would say that everything is lost.
#[tokio::test]
async fn reading_creates_no_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let stores = Stores::new(&StorageConfig::default(), folder.path()).unwrap();
    let read = stores.open_catalog_to_read().unwrap();
    assert_eq!(read.sessions().await.unwrap().len(), 0);
    assert!(!stores.catalog_file().exists() && !stores.has_data());
}

/// One process at a time brings the index up to date; where nothing is stored there is no turn to take.
#[tokio::test]
async fn the_index_is_brought_up_to_date_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let gone = Stores::new(&StorageConfig::default(), &folder.path().join("gone")).unwrap();
    assert!(gone.take_index_turn().is_none() && !gone.root.exists());
    let stores = Stores::new(&StorageConfig::default(), folder.path()).unwrap();
    drop(stores.open_catalog().unwrap());
    let turn = stores.take_index_turn().unwrap();
    assert!(stores.take_index_turn().is_none());
    let short = Duration::from_millis(20);
    assert!(stores.wait_for_index_turn(short).await.is_none());
    drop(turn);
    assert!(stores.wait_for_index_turn(short).await.is_some());
}
