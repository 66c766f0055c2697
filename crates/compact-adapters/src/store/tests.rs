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
