//! What every archive must do. Call [`suite`] with an empty store from the adapter's tests.
//!
//! What depends on the medium (torn writes, permissions, flipped bits) stays with the adapter.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use bytes::Bytes;

use super::{ArchiveError, ArchiveStore, PackId, reachable_packs};

/// Runs every check against a store that is empty.
pub async fn suite(store: &dyn ArchiveStore) {
    absent_packs_are_named(store).await;
    every_content_comes_back(store).await;
    putting_twice_is_one_pack(store).await;
    a_base_is_part_of_the_address(store).await;
    an_unknown_base_is_left_out(store).await;
    concurrent_puts_agree(store).await;
    a_long_chain_stays_readable(store).await;
    a_removed_base_is_named(store).await;
    listing_shows_everything_once(store).await;
    records_are_kept_beside_the_packs(store).await;
    what_is_derived_goes_with_any_pack(store).await;
    removing_everything_empties_the_store(store).await;
}

/// Contents that break naive stores: nothing, binary, repetitive, incompressible.
fn odd_contents() -> Vec<Bytes> {
    let noise = blake3::Hasher::new().finalize_xof();
    let mut random = vec![0; 100_000];
    let mut noise = noise;
    noise.fill(&mut random);
    vec![
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static("ünïcode\r\n\u{2028}".as_bytes()),
        Bytes::from_static(&[0xff, 0xfe, 0x80, 0x00]),
        Bytes::from(vec![b'a'; 3_000_000]),
        Bytes::from(random),
    ]
}

async fn absent_packs_are_named(store: &dyn ArchiveStore) {
    let absent = PackId::of(b"never put", None);
    let names_it =
        |error: &ArchiveError| matches!(error, ArchiveError::Missing { pack } if *pack == absent);
    assert!(names_it(&store.get(&absent).await.unwrap_err()));
    assert!(names_it(&store.info(&absent).await.unwrap_err()));
    assert!(names_it(&store.verify(&absent).await.unwrap_err()));
    store
        .remove(&absent)
        .await
        .expect("removing what is not there is no error");
    assert_eq!(
        store.list().await.unwrap(),
        vec![],
        "the suite needs an empty store"
    );
}

async fn every_content_comes_back(store: &dyn ArchiveStore) {
    for plain in odd_contents() {
        let info = store.put(plain.clone(), None).await.unwrap();
        assert_eq!(info.id, PackId::of(&plain, None));
        assert_eq!((info.plain_bytes, info.base), (plain.len() as u64, None));
        assert_eq!(store.get(&info.id).await.unwrap(), plain);
        assert_eq!(store.info(&info.id).await.unwrap(), info);
        store.verify(&info.id).await.unwrap();
    }
}

async fn putting_twice_is_one_pack(store: &dyn ArchiveStore) {
    let plain = Bytes::from_static(b"put twice");
    let first = store.put(plain.clone(), None).await.unwrap();
    let count = store.list().await.unwrap().len();
    assert_eq!(store.put(plain, None).await.unwrap(), first);
    assert_eq!(store.list().await.unwrap().len(), count);
}

async fn a_base_is_part_of_the_address(store: &dyn ArchiveStore) {
    let plain = Bytes::from_static(b"the same words");
    let alone = store.put(plain.clone(), None).await.unwrap();
    let base = store
        .put(Bytes::from_static(b"the same"), None)
        .await
        .unwrap();
    let based = store.put(plain.clone(), Some(&base.id)).await.unwrap();
    assert_eq!(based.base, Some(base.id));
    assert_eq!(based.id, PackId::of(&plain, Some(&base.id)));
    assert_ne!(based.id, alone.id);
    assert_eq!(store.get(&based.id).await.unwrap(), plain);
    let needed = reachable_packs(store, [based.id]).await.unwrap();
    assert_eq!(needed, [based.id, base.id].into());
}

async fn an_unknown_base_is_left_out(store: &dyn ArchiveStore) {
    let plain = Bytes::from_static(b"built on nothing");
    let unknown = PackId::of(b"never put", None);
    let info = store.put(plain.clone(), Some(&unknown)).await.unwrap();
    assert_eq!((info.base, info.id), (None, PackId::of(&plain, None)));
    assert_eq!(store.get(&info.id).await.unwrap(), plain);
}

async fn concurrent_puts_agree(store: &dyn ArchiveStore) {
    let plain = Bytes::from(vec![b'c'; 200_000]);
    let put = || store.put(plain.clone(), None);
    let (a, b, c, d) = tokio::join!(put(), put(), put(), put());
    let first = a.unwrap();
    assert!([b, c, d].into_iter().all(|other| other.unwrap() == first));
    assert_eq!(store.get(&first.id).await.unwrap(), plain);
}

async fn a_long_chain_stays_readable(store: &dyn ArchiveStore) {
    let mut plain = Vec::new();
    let mut last: Option<PackId> = None;
    let mut ids = Vec::new();
    for n in 0..150 {
        plain.extend_from_slice(format!("line {n}\n").as_bytes());
        let info = store
            .put(plain.clone().into(), last.as_ref())
            .await
            .unwrap();
        assert!(info.base.is_none() || info.base == last);
        assert_eq!(info.id, PackId::of(&plain, info.base.as_ref()));
        ids.push((info.id, plain.len()));
        last = Some(info.id);
    }
    for (id, len) in ids {
        assert_eq!(store.get(&id).await.unwrap(), plain[..len]);
    }
}

async fn a_removed_base_is_named(store: &dyn ArchiveStore) {
    let base = store
        .put(Bytes::from(vec![b'b'; 5_000]), None)
        .await
        .unwrap();
    let plain = Bytes::from(vec![b'b'; 6_000]);
    let info = store.put(plain.clone(), Some(&base.id)).await.unwrap();
    store.remove(&base.id).await.unwrap();
    match store.get(&info.id).await {
        Ok(bytes) => assert_eq!(bytes, plain),
        Err(error) => assert!(
            matches!(&error, ArchiveError::MissingBase { pack, base: gone }
                if (*pack, *gone) == (info.id, base.id)),
            "{error}"
        ),
    }
    store.remove(&info.id).await.unwrap();
}

async fn listing_shows_everything_once(store: &dyn ArchiveStore) {
    let ids = store.list().await.unwrap();
    let known = store
        .put(Bytes::from_static(b"put twice"), None)
        .await
        .unwrap()
        .id;
    assert!(ids.contains(&known));
    assert!(
        ids.windows(2).all(|pair| pair[0] < pair[1]),
        "sorted, without doubles"
    );
}

async fn removing_everything_empties_the_store(store: &dyn ArchiveStore) {
    for id in store.list().await.unwrap() {
        store.remove(&id).await.unwrap();
    }
    assert_eq!(store.list().await.unwrap(), vec![]);
}

async fn records_are_kept_beside_the_packs(store: &dyn ArchiveStore) {
    let packs = store.list().await.unwrap();
    let id = |session: &str| PackId::of_record(session, "receipt");
    let (one, other) = (id("one"), id("other"));
    assert!(matches!(
        store.get_record(&one).await.unwrap_err(),
        ArchiveError::Missing { pack } if pack == one
    ));
    for (id, text) in [(one, "first"), (other, "other"), (one, "again")] {
        store.put_record(&id, Bytes::from(text)).await.unwrap();
    }
    assert_eq!(store.get_record(&one).await.unwrap(), "again");
    assert_eq!(store.get_record(&other).await.unwrap(), "other");
    let mut all = vec![one, other];
    all.sort_unstable();
    assert_eq!(store.list_records().await.unwrap(), all);
    assert_eq!(store.list().await.unwrap(), packs, "a record is no pack");
    for id in [one, other, one] {
        store.remove_record(&id).await.unwrap();
    }
    assert_eq!(store.list_records().await.unwrap(), vec![]);
}

/// A store need not keep what is derived; one that does keeps the last, and nothing once something is gone.
async fn what_is_derived_goes_with_any_pack(store: &dyn ArchiveStore) {
    let listed = (
        store.list().await.unwrap(),
        store.list_records().await.unwrap(),
    );
    let id = PackId::of_record("one", "derived");
    assert_eq!(store.get_derived(&id).await.unwrap(), None);
    for gone in 0..2 {
        for text in ["first", "again"] {
            store.put_derived(&id, Bytes::from(text)).await.unwrap();
        }
        let kept = store.get_derived(&id).await.unwrap();
        assert!(kept.is_none_or(|kept| kept == "again"));
        let absent = PackId::of(b"never put", None);
        match gone {
            0 => store.remove(&absent).await.unwrap(),
            _ => store.remove_record(&absent).await.unwrap(),
        }
        assert_eq!(store.get_derived(&id).await.unwrap(), None);
    }
    let now = (
        store.list().await.unwrap(),
        store.list_records().await.unwrap(),
    );
    assert_eq!(now, listed, "it is neither pack nor record");
}
