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
    let copied = copy_packs(&from, &to).await.unwrap();
    assert_eq!(copied.packs, 10);
    assert_eq!(to.list().await.unwrap(), from.list().await.unwrap());
    for id in from.list().await.unwrap() {
        assert_eq!(to.info(&id).await.unwrap(), from.info(&id).await.unwrap());
        assert_eq!(to.get(&id).await.unwrap(), from.get(&id).await.unwrap());
    }
    assert_eq!(
        copy_packs(&from, &to).await.unwrap(),
        CopiedPacks::default()
    );
}

/// Says of every pack that it holds a gigabyte.
struct InflatedArchive(MemoryArchive);

#[async_trait]
impl ArchiveStore for InflatedArchive {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        self.0.put(plain, base).await
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        panic!("{id} is read")
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        let plain_bytes = 1 << 30;
        Ok(PackInfo {
            plain_bytes,
            ..self.0.info(id).await?
        })
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.0.list().await
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.0.remove(id).await
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.0.put_record(id, plain).await
    }

    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.0.get_record(id).await
    }

    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.0.list_records().await
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.0.remove_record(id).await
    }
}

#[tokio::test]
async fn packs_that_claim_more_than_their_size_allows_are_refused_before_any_is_read() {
    let (from, to) = (
        InflatedArchive(MemoryArchive::default()),
        MemoryArchive::default(),
    );
    let info = from.put(Bytes::from_static(b"small"), None).await.unwrap();
    let error = copy_packs(&from, &to).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "packs of {} bytes claim to hold 1073741824: at most 256 MiB and 1,024 for each are believed, \
             and nothing was copied",
            info.stored_bytes
        )
    );
    assert_eq!(to.list().await.unwrap(), []);
}
