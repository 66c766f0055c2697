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
