use compact_core::message::{Entry, Role};
use compact_core::wire::WireRules;

use super::*;
use crate::manager::tests::{Faulty, exchange, manager};
use crate::manager::{Preflight, SessionState};
use crate::port::catalog::{CatalogError, MemoryCatalog};

/// What a process knows of a session that has come so far.
fn session(exchanges: usize) -> SessionState {
    let mut session = SessionState::new("shared", &WireRules::LENIENT);
    session.append([Entry::from_text("u0", Role::User, "Port the parser.")]);
    session.append((0..exchanges).flat_map(|i| exchange(i, 30)));
    session
}

fn shown(ready: &Preflight, session: &SessionState) -> Vec<Entry> {
    ready.view.shown_entries(session.history())
}

#[tokio::test]
async fn another_process_shows_the_same_view_instead_of_compacting_again() {
    let (manager, _) = manager(4_000);
    let (mut one, mut two) = (session(20), session(21));
    let made = manager.preflight(&mut one).await.unwrap();
    assert!(made.receipt.is_some());
    let taken = manager.preflight(&mut two).await.unwrap();
    assert!(taken.receipt.is_none(), "it was made before");
    one.append(exchange(20, 30));
    let again = manager.preflight(&mut one).await.unwrap();
    assert_eq!(shown(&taken, &two), shown(&again, &one));
    assert_eq!(
        manager
            .catalog
            .session_records("shared")
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_process_that_begins_anew_goes_on_where_others_were() {
    let (manager, _) = manager(4_000);
    let mut first = session(0);
    for n in 0..90 {
        first.append(exchange(n, 30));
        manager.preflight(&mut first).await.unwrap();
    }
    let chain = manager.catalog.session_records("shared").await.unwrap();
    assert!(chain.len() >= 3, "{}", chain.len());
    let mut late = session(90);
    late.append([Entry::from_text("u1", Role::User, "And now?")]);
    first.append([Entry::from_text("u1", Role::User, "And now?")]);
    let (one, two) = (
        manager.preflight(&mut first).await.unwrap(),
        manager.preflight(&mut late).await.unwrap(),
    );
    assert_eq!(shown(&one, &first), shown(&two, &late));
    assert_eq!(
        manager.catalog.session_records("shared").await.unwrap(),
        chain
    );
}

#[tokio::test]
async fn while_another_process_compacts_a_call_gets_the_view_that_there_is() {
    let (mut manager, _) = manager(4_000);
    manager.policy.wait_seconds = 0;
    let lease = manager.catalog.claim("shared").await.unwrap().unwrap();
    let mut mine = session(20);
    let ready = manager.preflight(&mut mine).await.unwrap();
    assert!(ready.receipt.is_none());
    assert_eq!(shown(&ready, &mine), mine.history().entries);
    manager.catalog.release(&lease).await.unwrap();
    let ready = manager.preflight(&mut mine).await.unwrap();
    assert!(
        ready.receipt.is_some(),
        "nobody else compacts, and nothing failed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_dead_holder_only_until_its_lease_ends() {
    let (mut manager, _) = manager(4_000);
    let time = Duration::from_millis(150);
    manager.catalog = Arc::new(MemoryCatalog::default().with_lease_time(time));
    manager.catalog.claim("shared").await.unwrap().unwrap();
    let start = Instant::now();
    let ready = manager.preflight(&mut session(20)).await.unwrap();
    assert!(ready.receipt.is_some());
    assert!(start.elapsed() >= time);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_compaction_takes_long() {
    let (mut manager, _) = manager(4_000);
    let (archive, time) = (Faulty::shut(), Duration::from_millis(200));
    manager.catalog = Arc::new(MemoryCatalog::default().with_lease_time(time));
    manager.archive = Some(archive.clone());
    let working = manager.clone();
    let compaction = tokio::spawn(async move { working.preflight(&mut session(20)).await });
    tokio::time::sleep(time * 4).await;
    assert!(manager.catalog.claim("shared").await.unwrap().is_none());
    archive.open.add_permits(100);
    assert!(compaction.await.unwrap().unwrap().receipt.is_some());
    assert!(manager.catalog.claim("shared").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_overtaken_records_nothing() {
    let (mut manager, _) = manager(4_000);
    let archive = Faulty::shut();
    manager.archive = Some(archive.clone());
    let working = manager.clone();
    let compaction = tokio::spawn(async move { working.preflight(&mut session(20)).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    // As if it had been silent for too long.
    let lost = Lease {
        session_id: "shared".to_owned(),
        fence: 1,
    };
    manager.catalog.release(&lost).await.unwrap();
    assert!(manager.catalog.claim("shared").await.unwrap().is_some());
    archive.open.add_permits(100);
    let error = compaction.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Overtaken(_) | Error::Catalog(CatalogError::Fenced { .. })
        ),
        "{error}"
    );
    assert_eq!(manager.catalog.session_records("shared").await.unwrap(), []);
    assert_eq!(manager.catalog.last_attempt("shared").await.unwrap(), None);
}
