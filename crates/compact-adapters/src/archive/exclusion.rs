//! Whether a store lets only one writer create an object.
//!
//! Stores that speak S3 promise it with `If-None-Match: *`, and of three that were tried one ignored it
//! and one let several writers win at once. So it is tried out, before the first write of a process;
//! the verdict is left in the store for the next one.

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, Result};
use ring::rand::{SecureRandom, SystemRandom};

/// Where the verdict is left.
const VERDICT_OBJECT: &str = "probe/exclusion-1";

/// How long a verdict counts: a server may be replaced or updated.
const FRESH: SignedDuration = SignedDuration::from_hours(24);

/// So many writers try to create the same object at once.
const WRITERS: usize = 8;

/// How often the test is repeated, since a race need not show the first time.
const ROUNDS: usize = 2;

/// The behaviour of a store when several writers create the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// One writer wins, the others are told.
    Works,
    /// Writers that come one after the other are told; at once, several win.
    Races,
    /// Everybody wins, the last one stays.
    Ignored,
    /// The condition is refused.
    Refused,
}

impl Exclusion {
    const ALL: [Exclusion; 4] = [
        Exclusion::Works,
        Exclusion::Races,
        Exclusion::Ignored,
        Exclusion::Refused,
    ];

    /// Returns a word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Exclusion::Works => "works",
            Exclusion::Races => "races",
            Exclusion::Ignored => "ignored",
            Exclusion::Refused => "refused",
        }
    }
}

/// Returns the verdict on a store: one that was left there not long before `now`, or a new one.
pub(super) async fn find_exclusion(store: &dyn ObjectStore, now: Timestamp) -> Result<Exclusion> {
    if let Some(known) = read_verdict(store, now).await {
        return Ok(known);
    }
    let mut verdict = Exclusion::Works;
    for _ in 0..ROUNDS {
        verdict = probe_store(store).await?;
        if verdict != Exclusion::Works {
            break;
        }
    }
    let text = format!("{} {}", verdict.as_str(), now);
    // Whoever may not write it tries again the next time.
    let _ = store.put(&Path::from(VERDICT_OBJECT), text.into()).await;
    Ok(verdict)
}

async fn read_verdict(store: &dyn ObjectStore, now: Timestamp) -> Option<Exclusion> {
    let bytes = store
        .get(&Path::from(VERDICT_OBJECT))
        .await
        .ok()?
        .bytes()
        .await
        .ok()?;
    let (word, at) = std::str::from_utf8(&bytes).ok()?.split_once(' ')?;
    let at: Timestamp = at.trim().parse().ok()?;
    let age = now.duration_since(at);
    let found = Exclusion::ALL.into_iter().find(|e| e.as_str() == word);
    found.filter(|_| age < FRESH && age > -FRESH)
}

/// Tests conditional writes: several writers create one object at once, and then one more does.
async fn probe_store(store: &dyn ObjectStore) -> Result<Exclusion> {
    let mut random = [0; 16];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| probe_error("no random numbers"))?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let place = Path::from_iter(["probe", &name]);
    let create = || store.put_opts(&place, "probe".into(), PutMode::Create.into());
    let at_once = join_all((0..WRITERS).map(|_| create())).await;
    let later = create().await;
    let _ = store.delete(&place).await;
    judge_probe(at_once, later)
}

fn judge_probe<T>(at_once: Vec<Result<T>>, later: Result<T>) -> Result<Exclusion> {
    let won = at_once.iter().filter(|result| result.is_ok()).count();
    let is_refusal = |result: &Result<T>| matches!(result, Err(e) if is_condition_refused(e));
    if at_once.iter().chain([&later]).any(is_refusal) {
        return Ok(Exclusion::Refused);
    }
    match (won, later) {
        // Nobody could write: that says nothing about conditions.
        (0, _) => Err(at_once
            .into_iter()
            .find_map(Result::err)
            .unwrap_or_else(|| probe_error("no answer"))),
        (_, Ok(_)) => Ok(Exclusion::Ignored),
        (1, Err(_)) => Ok(Exclusion::Works),
        (_, Err(_)) => Ok(Exclusion::Races),
    }
}

/// Returns whether an error is about the condition, rather than about the store or the object.
fn is_condition_refused(error: &Error) -> bool {
    let said = || {
        let text = error.to_string();
        text.contains("NotImplemented") || text.contains("501")
    };
    match error {
        Error::NotImplemented { .. } => true,
        Error::Generic { .. } => said(),
        _ => false,
    }
}

fn probe_error(reason: &'static str) -> Error {
    Error::Generic {
        store: "archive",
        source: reason.into(),
    }
}
