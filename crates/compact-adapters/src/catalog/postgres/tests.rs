use compact_runtime::port::catalog::conformance::{self, ODD_SESSION_IDS, sample_record};
use serde_json::json;

use super::*;
use crate::postgres::tests::Database;

#[tokio::test]
async fn postgres_conforms() {
    let Some(database) = Database::new().await else {
        return;
    };
    let catalog = PostgresCatalog::new(database.server());
    assert_eq!(catalog.migrate().await.unwrap().0, 0);
    conformance::suite(&catalog).await;
}

#[tokio::test]
async fn leases_run_out_and_late_writers_are_refused() {
    let Some(database) = Database::new().await else {
        return;
    };
    let catalog = PostgresCatalog::new(database.server());
    let time = Duration::from_millis(400);
    // The time is the server's, which nobody here can set.
    conformance::lease_suite(&catalog.with_lease_time(time), tokio::time::sleep).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_blocks_no_session() {
    let Some(database) = Database::new().await else {
        return;
    };
    let catalog = PostgresCatalog::new(database.server());
    let set_back = async |time: Duration| {
        const LATER: &str = "UPDATE compact.leases SET ends = ends + $1 * interval '1 millisecond'";
        let time = time.as_secs_f64() * 1000.0;
        assert_eq!(catalog.execute_statement(LATER, &[&time]).await.unwrap(), 1);
    };
    conformance::set_back_suite(&catalog, set_back).await;
}

#[tokio::test]
async fn everything_is_there_for_another_process() {
    let Some(database) = Database::new().await else {
        return;
    };
    let catalog = PostgresCatalog::new(database.server());
    for id in ODD_SESSION_IDS {
        catalog.save_record(&sample_record(id, "r")).await.unwrap();
        catalog.save_event(id, &json!({"n": 1})).await.unwrap();
    }
    let other = PostgresCatalog::new(database.server());
    let newest = MIGRATIONS.len() as u32;
    assert_eq!(other.migrate().await.unwrap(), (newest, newest));
    for id in ODD_SESSION_IDS {
        assert_eq!(
            other.latest_record(id).await.unwrap(),
            Some(sample_record(id, "r"))
        );
        assert_eq!(other.events(id).await.unwrap(), [json!({"n": 1})]);
    }
}

#[tokio::test]
async fn many_may_open_a_new_database_at_once() {
    let Some(database) = Database::new().await else {
        return;
    };
    let open = async || PostgresCatalog::new(database.server()).migrate().await;
    let (a, b, c, d) = tokio::join!(open(), open(), open(), open());
    assert!([a, b, c, d].into_iter().all(|opened| opened.is_ok()));
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let Some(database) = Database::new().await else {
        return;
    };
    let server = database.server();
    PostgresCatalog::new(server.clone())
        .migrate()
        .await
        .unwrap();
    let newer = "UPDATE compact.migrations SET version = 99";
    let client = server.acquire_client().await.unwrap();
    client.batch_execute(newer).await.unwrap();
    let error = PostgresCatalog::new(server.clone())
        .sessions()
        .await
        .unwrap_err();
    assert!(
        matches!(error, CatalogError::Newer { found: 99, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_damaged_value_is_named() {
    let Some(database) = Database::new().await else {
        return;
    };
    let server = database.server();
    let catalog = PostgresCatalog::new(server.clone());
    catalog
        .save_record(&sample_record("s", "receipt"))
        .await
        .unwrap();
    let garble = "UPDATE compact.sessions SET name = '\\xff'";
    let client = server.acquire_client().await.unwrap();
    client.batch_execute(garble).await.unwrap();
    let error = catalog.latest_record("s").await.unwrap_err();
    assert!(matches!(error, CatalogError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let address: crate::postgres::PostgresAddress =
        "postgres://ann@127.0.0.1:1/team".parse().unwrap();
    let server = PostgresServer::new(address).unwrap();
    let error = PostgresCatalog::new(server).sessions().await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("cannot open catalog postgres://ann@127.0.0.1:1/team: "),
        "{said}"
    );
    assert!(matches!(error, CatalogError::Unreachable { .. }));
}
