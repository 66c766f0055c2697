use std::collections::BTreeSet;

use bytes::Bytes;

use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::suite(&MemoryArchive::default()).await;
}

#[test]
fn ids_have_one_spelling() {
    let id = PackId::of(b"plain", None);
    assert_eq!(id.to_string().parse(), Ok(id));
    assert!(id.to_string().to_uppercase().parse::<PackId>().is_err());
    assert!("../../etc/passwd".parse::<PackId>().is_err());
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, format!("\"{id}\""));
    assert_eq!(serde_json::from_str::<PackId>(&json).unwrap(), id);
}

#[test]
fn an_address_covers_the_base_unambiguously() {
    let base = PackId::of(b"base", None);
    let mut glued = base.0.to_vec();
    glued.extend_from_slice(b"plain");
    assert_ne!(PackId::of(b"plain", Some(&base)), PackId::of(&glued, None));
}

#[tokio::test]
async fn a_copy_has_every_pack_under_its_id_and_copying_again_copies_nothing() {
    let (from, to) = (MemoryArchive::default(), MemoryArchive::default());
    let mut base: Option<PackId> = None;
    for n in 0..10 {
        let plain = Bytes::from(format!("pack {n} ").repeat(n));
        base = Some(from.put(plain, base.as_ref()).await.unwrap().id);
    }
    let copied = copy_archive(&from, &to, &BTreeSet::new()).await.unwrap();
    assert_eq!(copied.packs, 10);
    assert_eq!(to.list().await.unwrap(), from.list().await.unwrap());
    for id in from.list().await.unwrap() {
        assert_eq!(to.info(&id).await.unwrap(), from.info(&id).await.unwrap());
        assert_eq!(to.get(&id).await.unwrap(), from.get(&id).await.unwrap());
    }
    assert_eq!(
        copy_archive(&from, &to, &BTreeSet::new()).await.unwrap(),
        CopiedPacks::default()
    );
}
