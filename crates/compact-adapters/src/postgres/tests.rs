//! A database for each test, on the server that `COMPACT_TEST_POSTGRES` names; without one, tests
//! that need it pass without having looked. `cargo xtask test` starts a server.

use std::sync::atomic::{AtomicU32, Ordering};

use compact_runtime::port::catalog::CatalogError;

use super::*;

const VARIABLE: &str = "COMPACT_TEST_POSTGRES";

/// A database that nobody else uses.
pub(crate) struct Database {
    url: String,
}

impl Database {
    /// `None` when there is no server to test with.
    pub(crate) async fn new() -> Option<Database> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let base = std::env::var(VARIABLE).ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let server = PostgresServer::new(format!("{base}/postgres").parse().unwrap()).unwrap();
        let client = server.acquire_client().await.unwrap();
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        client.batch_execute(&create).await.unwrap();
        Some(Database {
            url: format!("{base}/{name}"),
        })
    }

    /// Its address with parameters, such as `sslmode=require`.
    pub(crate) fn url(&self, parameters: &str) -> String {
        format!("{}?{parameters}", self.url)
    }

    pub(crate) fn server(&self) -> PostgresServer {
        PostgresServer::new(self.url("").parse().unwrap()).unwrap()
    }
}

fn parse(url: &str) -> Result<String, PostgresAddressError> {
    Ok(url.parse::<PostgresAddress>()?.to_string())
}

#[test]
fn an_address_is_shown_without_its_parameters() {
    let url = "postgres://ann@db.example:6432/team?sslmode=verify-full&sslrootcert=%2Fca.pem";
    assert_eq!(parse(url).unwrap(), "postgres://ann@db.example:6432/team");
    let address: PostgresAddress = url.parse().unwrap();
    assert_eq!(address.ssl, SslMode::VerifyFull);
    assert_eq!(address.root_certificate, Some("/ca.pem".into()));
    assert_eq!(address.connections, CONNECTIONS);
}

#[test]
fn a_password_has_no_place_in_an_address() {
    let refused = parse("postgres://ann:hunter2@db/team").unwrap_err();
    assert_eq!(refused, PostgresAddressError::Password);
    let refused = parse("postgres://ann@db/team?password=hunter2").unwrap_err();
    assert_eq!(refused, PostgresAddressError::Password);
    for url in [
        "postgres://ann:hunter2@db:x/team",
        "postgres://ann:hunter2@db/t?what=1",
    ] {
        let message = parse(url).unwrap_err().to_string();
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn what_is_wrong_with_an_address_is_named() {
    assert_eq!(parse("mysql://db/team"), Err(PostgresAddressError::Scheme));
    assert_eq!(parse("postgres:///team"), Err(PostgresAddressError::NoHost));
    for url in ["postgres://db/t?sslmode=maybe", "postgres://db/t?pool=0"] {
        assert!(
            matches!(parse(url), Err(PostgresAddressError::Parameter { .. })),
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_broke_is_replaced() {
    let Some(database) = Database::new().await else {
        return;
    };
    let server = database.server();
    let pid = async |client: &PooledClient<'_>| {
        let asked = client.query_one("SELECT pg_backend_pid()", &[]).await;
        asked.unwrap().get::<_, i32>(0)
    };
    let first = pid(&server.acquire_client().await.unwrap()).await;
    let other = database.server();
    let kill = "SELECT pg_terminate_backend($1)";
    let killer = other.acquire_client().await.unwrap();
    killer.execute(kill, &[&first]).await.unwrap();
    // Whether the client has heard of it or must ask, the next one answers.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let second = pid(&server.acquire_client().await.unwrap()).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn no_more_connections_are_opened_than_allowed() {
    let Some(database) = Database::new().await else {
        return;
    };
    let server = PostgresServer::new(database.url("pool=2").parse().unwrap()).unwrap();
    let ask = || async {
        let client = server.acquire_client().await.unwrap();
        let row = client.query_one("SELECT pg_backend_pid() FROM pg_sleep(0.02)", &[]);
        row.await.unwrap().get::<_, i32>(0)
    };
    let mut pids = futures::future::join_all((0..12).map(|_| ask())).await;
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 2);
}

#[tokio::test]
async fn connections_survive_the_runtime_that_made_them() {
    let Some(database) = Database::new().await else {
        return;
    };
    let server = database.server();
    for _ in 0..2 {
        let server = server.clone();
        let asked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = server.acquire_client().await.unwrap();
                client.query_one("SELECT 1", &[]).await.unwrap().len()
            })
        });
        assert_eq!(asked.join().unwrap(), 1);
    }
}

/// The server of `cargo xtask test` has a certificate for `localhost`, signed by an authority whose
/// own certificate is in the file that the variable names.
#[tokio::test]
async fn sslmode_is_honoured() {
    let (Some(database), Ok(authority)) = (
        Database::new().await,
        std::env::var("COMPACT_TEST_POSTGRES_CA"),
    ) else {
        return;
    };
    let is_encrypted = async |parameters: &str, host: &str| {
        let url = database.url(parameters).replace("127.0.0.1", host);
        let server = PostgresServer::new(url.parse().unwrap()).unwrap();
        let client = server.acquire_client().await?;
        let select = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        Ok::<bool, PostgresError>(client.query_one(select, &[]).await?.get(0))
    };
    let known = format!("sslrootcert={authority}&sslmode");
    for (parameters, host, want) in [
        ("sslmode=disable".to_owned(), "127.0.0.1", Some(false)),
        ("sslmode=prefer".to_owned(), "127.0.0.1", Some(true)),
        ("sslmode=require".to_owned(), "127.0.0.1", Some(true)),
        // Nobody that this system trusts signed it.
        ("sslmode=verify-ca".to_owned(), "localhost", None),
        (format!("{known}=verify-ca"), "127.0.0.1", Some(true)),
        (format!("{known}=verify-full"), "localhost", Some(true)),
        // It is a certificate for another name.
        (format!("{known}=verify-full"), "127.0.0.1", None),
    ] {
        let found = is_encrypted(&parameters, host).await.ok();
        assert_eq!(found, want, "{parameters} {host}");
    }
}

/// A server that says that it does not speak TLS, as PostgreSQL does.
#[tokio::test]
async fn a_server_without_tls_is_told_where_it_was_asked_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 8];
            let _ = stream.read_exact(&mut request).await;
            let _ = stream.write_all(b"N").await;
        }
    });
    let url = format!("postgres://ann@{place}/team?sslmode=require");
    let server = PostgresServer::new(url.parse().unwrap()).unwrap();
    let Err(error) = server.acquire_client().await else {
        panic!("it let us in");
    };
    let error = error.into_catalog_error("open it".to_owned());
    assert_eq!(
        error.to_string(),
        "cannot open it: error performing TLS handshake: server does not support TLS; \
         turn on TLS there, or use sslmode=prefer or sslmode=disable"
    );
    assert!(matches!(error, CatalogError::Refused { .. }));
}
