//! Processes that share one PostgreSQL and one bucket, and are killed while they compact.
//!
//! Each process tells several sessions at once a little further, and compacts what is due: those that
//! nobody has compacted yet, and every now and then one of a few at which processes meet.
//! `COMPACT_TEST_POSTGRES` and `COMPACT_TEST_S3` name the servers, as `cargo xtask test` starts them;
//! `cargo xtask prove cluster` kills often, and goes on until every session was compacted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use compact_adapters::archive::{Bucket, ObjectArchive};
use compact_adapters::catalog::PostgresCatalog;
use compact_adapters::postgres::PostgresServer;
use compact_core::message::{Block, Entry};
use compact_core::policy::Policy;
use compact_core::wire::WireRules;
use compact_runtime::manager::read_record;
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::CatalogError;
use compact_runtime::{Error, Manager, Session};
use futures::future::join_all;
use futures::{StreamExt, stream};

use crate::place;

const PROCESSES: usize = 4;
const SESSIONS: u64 = 500;
/// So many of them are picked a quarter of the time.
const HOT: u64 = 6;
/// So many sessions a process tells at once.
const LANES: usize = 3;
/// How much further a session is told each time.
const STEP: usize = 40;
const LEASE: Duration = Duration::from_secs(2);
/// Sessions that must have been compacted where there is little time.
const ENOUGH: usize = 10;
/// How much longer than its kills it lasts on a busy machine, until they were.
const PATIENCE: Duration = Duration::from_secs(300);
/// With so many kills, all of them must have been.
const MANY: usize = 60;
/// So many sessions are looked at at once in the end.
const LOOKING: usize = 8;
const POSTGRES: &str = "COMPACT_TEST_POSTGRES";
const S3: &str = "COMPACT_TEST_S3";
const DATABASE: &str = "COMPACT_CLUSTER_DATABASE";
const PREFIX: &str = "COMPACT_CLUSTER_PREFIX";
const SEED: &str = "COMPACT_CLUSTER_SEED";
/// How many processes are killed.
const TRIALS: &str = "COMPACT_TRIALS";

/// What processes share.
#[derive(Clone)]
struct Shared {
    database: String,
    bucket: Bucket,
}

impl Shared {
    fn from_env(database: String, prefix: String) -> Option<Shared> {
        Some(Shared {
            database,
            bucket: Bucket {
                name: "compact-test".to_owned(),
                prefix,
                endpoint: Some(std::env::var(S3).ok()?),
                region: Some("us-east-1".to_owned()),
                ..Bucket::default()
            },
        })
    }

    fn manager(&self) -> Arc<Manager> {
        let dir = tempfile::tempdir().unwrap();
        let server = PostgresServer::new(self.database.parse().unwrap()).unwrap();
        let embedded = place::manager(dir.path());
        let archive = ObjectArchive::in_bucket(&self.bucket).unwrap();
        let catalog = PostgresCatalog::new(server).with_lease_time(LEASE);
        let policy = Policy {
            wait_seconds: 5,
            ..embedded.policy().clone()
        };
        let manager = Manager::clone(&embedded)
            .with_archive(Some(Arc::new(archive)))
            .with_catalog(Arc::new(catalog));
        Arc::new(manager.with_policy(policy))
    }
}

/// The n-th entry of a session: no two sessions say the same.
fn entry(session: &str, n: usize) -> Entry {
    let mut entry = place::entry(n);
    for block in &mut entry.blocks {
        if let Block::Text(text) | Block::ToolResult { content: text, .. } = block {
            *text = format!("in {session}: {text}");
        }
    }
    entry
}

fn entries(session: &str, length: usize) -> Vec<Entry> {
    (0..length).map(|n| entry(session, n)).collect()
}

async fn restored(manager: &Manager, session: &str) -> Vec<Entry> {
    let whole = match manager.restore(session).await {
        Err(Error::NotFound(_)) => return Vec::new(),
        whole => whole.unwrap().bytes,
    };
    let lines = whole.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|l| serde_json::from_slice(l).unwrap()).collect()
}

/// Which session is told further next.
struct Picker {
    random: u64,
    /// Those that nobody has compacted yet.
    new: Vec<u64>,
}

impl Picker {
    fn new(random: u64, compacted: &BTreeSet<String>) -> Picker {
        let is_new = |number: &u64| !compacted.contains(&name(*number));
        let new = (0..SESSIONS).filter(is_new).collect();
        Picker { random, new }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = next(self.random);
        (self.random >> 33) % bound
    }

    fn pick(&mut self) -> String {
        if self.below(4) == 0 {
            return name(self.below(HOT));
        }
        let number = match self.new.len() as u64 {
            0 => self.below(SESSIONS),
            left => {
                let at = self.below(left) as usize;
                self.new.swap_remove(at)
            }
        };
        name(number)
    }
}

fn name(number: u64) -> String {
    format!("session-{number}")
}

/// A process that is killed: it says what it has put on record.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_of_a_cluster() {
    let (Ok(database), Ok(prefix), Ok(seed)) = (
        std::env::var(DATABASE),
        std::env::var(PREFIX),
        std::env::var(SEED),
    ) else {
        return;
    };
    let manager = Shared::from_env(database, prefix).unwrap().manager();
    let sessions = manager.catalog().sessions().await.unwrap();
    let compacted = sessions.into_iter().map(|info| info.session_id).collect();
    let picker = Mutex::new(Picker::new(seed.parse().unwrap(), &compacted));
    let lane = async || {
        loop {
            let name = picker.lock().unwrap().pick();
            further(&manager, &name).await;
        }
    };
    join_all((0..LANES).map(|_| lane())).await;
}

/// Tells a session further and compacts it if it is due.
async fn further(manager: &Arc<Manager>, name: &str) {
    let length = restored(manager, name).await.len() + STEP;
    let session = Session::new(Arc::clone(manager), name, &WireRules::LENIENT);
    let mut session = session.without_background();
    session.append(entries(name, length)).unwrap();
    match session.preflight().await {
        Ok(ready) if ready.receipt.is_some() => println!("recorded {name} {length}"),
        Ok(_) => println!("left {name} {length}"),
        // Another process was faster: that is what leases are for.
        Err(Error::Overtaken(_) | Error::Catalog(CatalogError::Fenced { .. })) => {
            println!("overtaken {name} {length}");
        }
        Err(error) => println!("failed {name} {error:?}"),
    }
}

fn next(random: u64) -> u64 {
    random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// What processes said.
#[derive(Default)]
struct Said {
    recorded: BTreeMap<String, usize>,
    words: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (Some(what), Some(session)) = (words.next(), words.next()) else {
            return;
        };
        if !["recorded", "left", "overtaken", "failed"].contains(&what) {
            return;
        }
        *self.words.entry(what.to_owned()).or_default() += 1;
        match (what, words.next().and_then(|n| n.parse::<usize>().ok())) {
            ("recorded", Some(length)) => {
                let most = self.recorded.entry(session.to_owned()).or_default();
                *most = length.max(*most);
            }
            ("failed", _) => self.failures.push(line.to_owned()),
            _ => {}
        }
    }
}

fn start(shared: &Shared, seed: u64, said: &Arc<Mutex<Said>>) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cluster::a_process_of_a_cluster", "--nocapture"])
        .env(DATABASE, &shared.database)
        .env(PREFIX, &shared.bucket.prefix)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = Arc::clone(said);
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            said.lock().unwrap().hear(&line);
        }
    });
    child
}

/// Lets processes run and kills one of them every second. Returns how many were killed.
fn storm(shared: &Shared, kills: usize, said: &Arc<Mutex<Said>>) -> usize {
    let mut random = 7;
    let mut seed = || {
        random = next(random);
        random
    };
    let mut children: Vec<Child> = (0..PROCESSES)
        .map(|_| start(shared, seed(), said))
        .collect();
    let begin = Instant::now();
    let mut killed = 0;
    // On a busy machine it goes on until there is something to look at.
    let recorded = || said.lock().unwrap().recorded.len();
    let enough = enough(kills);
    let most = PATIENCE + Duration::from_secs(2) * kills as u32;
    while killed < kills || (recorded() < enough && begin.elapsed() < most) {
        thread::sleep(Duration::from_millis(800 + (seed() >> 33) % 400));
        let at = (seed() >> 33) as usize % PROCESSES;
        children[at].kill().unwrap();
        children[at].wait().unwrap();
        children[at] = start(shared, seed(), said);
        killed += 1;
    }
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    killed
}

/// How many sessions must have been compacted.
fn enough(kills: usize) -> usize {
    match kills >= MANY {
        true => SESSIONS as usize,
        false => ENOUGH,
    }
}

async fn shared() -> Option<Shared> {
    let server = std::env::var(POSTGRES).ok()?;
    let name = format!("cluster_{}", std::process::id());
    let config = format!("{server}/postgres");
    let (client, connection) = tokio_postgres::connect(&config, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
    client.batch_execute(&create).await.unwrap();
    Shared::from_env(format!("{server}/{name}"), name)
}

/// Every transcript whole, one view for each compaction, no lease stuck, every pack sound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_nothing_and_leave_one_line_of_views() {
    let Some(shared) = shared().await else {
        return;
    };
    let kills = std::env::var(TRIALS).ok().and_then(|s| s.parse().ok());
    let kills = kills.unwrap_or(8);
    let said = Arc::new(Mutex::new(Said::default()));
    let begin = Instant::now();
    let killed = {
        let (shared, said) = (shared.clone(), Arc::clone(&said));
        let storm = tokio::task::spawn_blocking(move || storm(&shared, kills, &said));
        storm.await.unwrap()
    };
    let lasted = begin.elapsed().as_secs();
    tokio::time::sleep(LEASE).await;
    let said = std::mem::take(&mut *said.lock().unwrap());
    assert_eq!(said.failures, Vec::<String>::new());
    let manager = shared.manager();
    let found = inspect(&manager, &said).await;
    println!(
        "{lasted} s, {killed} killed; {} sessions, {} compactions, {} packs; processes said {:?}",
        found.sessions, found.records, found.packs, said.words
    );
    assert!(found.sessions >= enough(kills));
    // A process that is killed may have had no time to say what it had just put on record.
    let heard = said.words.get("recorded").copied().unwrap_or(0);
    let unheard = (killed + PROCESSES) * LANES;
    assert!((heard..=heard + unheard).contains(&found.records));
}

/// What is there in the end.
struct Found {
    sessions: usize,
    records: usize,
    packs: usize,
}

/// Looks at everything that is left.
async fn inspect(manager: &Manager, said: &Said) -> Found {
    for name in said.recorded.keys() {
        let latest = manager.catalog().latest_record(name).await.unwrap();
        assert!(latest.is_some(), "{name} was compacted and is not there");
    }
    let sessions = manager.catalog().sessions().await.unwrap();
    let looked = stream::iter(&sessions)
        .map(|info| inspect_session(manager, &info.session_id, said))
        .buffer_unordered(LOOKING)
        .collect::<Vec<usize>>();
    let records = looked.await;
    Found {
        sessions: records.iter().filter(|records| **records > 0).count(),
        records: records.iter().sum(),
        packs: every_pack_is_sound(manager).await,
    }
}

/// Returns how often a session was compacted.
async fn inspect_session(manager: &Manager, name: &str, said: &Said) -> usize {
    let lease = manager.catalog().claim(name).await.unwrap();
    assert!(lease.is_some(), "the lease of {name} is stuck");
    let chain = manager.catalog().session_records(name).await.unwrap();
    let mut previous = None;
    for record in &chain {
        assert_eq!(
            record.previous, previous,
            "{name} has two views of one history"
        );
        previous = Some(record.receipt_id.clone());
    }
    if let Some(last) = &previous {
        let verified = manager.verify_receipt(last).await.unwrap();
        assert_eq!(verified.mismatches, [], "{name}");
    }
    let whole = restored(manager, name).await;
    assert_eq!(whole, entries(name, whole.len()));
    let acknowledged = said.recorded.get(name).copied().unwrap_or(0);
    assert!(
        whole.len() >= acknowledged,
        "{name}: {} < {acknowledged}",
        whole.len()
    );
    chain.len()
}

/// Returns how many there are.
async fn every_pack_is_sound(manager: &Manager) -> usize {
    let archive = manager.archive().unwrap();
    let stored: BTreeSet<PackId> = archive.list().await.unwrap().into_iter().collect();
    for pack in manager.catalog().referenced_packs().await.unwrap() {
        assert!(
            stored.contains(&pack),
            "{pack} is on record and not in the archive"
        );
    }
    let verified = stream::iter(&stored).map(|pack| archive.verify(pack));
    let verified = verified.buffer_unordered(LOOKING).collect::<Vec<_>>().await;
    verified.into_iter().for_each(Result::unwrap);
    every_record_is_true(manager).await;
    stored.len()
}

/// What the archive says of itself is what the catalog says.
async fn every_record_is_true(manager: &Manager) {
    let archive = manager.archive().unwrap();
    for address in archive.list_records().await.unwrap() {
        let kept = read_record(&**archive, &address).await.unwrap();
        let chain = manager
            .catalog()
            .session_records(&kept.session_id)
            .await
            .unwrap();
        assert!(chain.contains(&kept), "no catalog names {kept:?}");
    }
}
