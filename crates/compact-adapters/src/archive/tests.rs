mod flawed;
mod refused;

use std::path::PathBuf;

use compact_runtime::port::archive::conformance;
use object_store::memory::InMemory;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Fixture {
    dir: TempDir,
    archive: ObjectArchive,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = TempDir::new().unwrap();
        let archive = ObjectArchive::open(&dir.path().join("data/archive")).unwrap();
        Fixture { dir, archive }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("data/archive")
    }

    fn file(&self, id: &PackId) -> PathBuf {
        self.root().join(ObjectKind::Packs.location(id).as_ref())
    }

    async fn put(&self, plain: &str, base: Option<&PackId>) -> PackId {
        let plain = Bytes::copy_from_slice(plain.as_bytes());
        self.archive.put(plain, base).await.unwrap().id
    }

    /// Every file below the root.
    fn files(&self) -> Vec<PathBuf> {
        let mut open = vec![self.root()];
        let mut files = Vec::new();
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            } else {
                files.push(path);
            }
        }
        files
    }
}

/// What follows from packs is not waited for until it is on the disk: a file that was cut short is none.
#[tokio::test]
async fn what_was_derived_and_cut_short_is_not_believed() {
    let fixture = Fixture::new();
    let id = PackId::of_record("session", "ledger");
    let plain = Bytes::from("names and sentences ".repeat(500));
    let put = fixture.archive.put_derived(&id, plain.clone());
    put.await.unwrap();
    assert_eq!(fixture.archive.get_derived(&id).await.unwrap(), Some(plain));
    let files = fixture.files();
    let [file] = files.as_slice() else {
        panic!("{files:?}");
    };
    let bytes = std::fs::read(file).unwrap();
    for kept in [0, 60, bytes.len() - 1] {
        std::fs::write(file, bytes.get(..kept).unwrap()).unwrap();
        let read = fixture.archive.get_derived(&id).await;
        let is_damaged = matches!(read, Err(ArchiveError::Damaged { .. }));
        assert!(is_damaged, "{kept}: {read:?}");
    }
}

#[tokio::test]
async fn the_file_system_conforms() {
    conformance::suite(&Fixture::new().archive).await;
}

#[tokio::test]
async fn any_object_store_conforms() {
    conformance::suite(&ObjectArchive::new(Arc::new(InMemory::new()))).await;
}

#[tokio::test]
async fn a_flipped_bit_in_any_byte_is_found_and_named() {
    let fixture = Fixture::new();
    let base = fixture.put(&"base text ".repeat(20), None).await;
    let id = fixture
        .put(&"base text and more ".repeat(20), Some(&base))
        .await;
    for (damaged, reader) in [(id, id), (base, id), (base, base)] {
        let path = fixture.file(&damaged);
        let sound = std::fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            let error = fixture.archive.verify(&reader).await.unwrap_err();
            assert!(names(&error, &damaged), "byte {at}: {error}");
        }
        std::fs::write(&path, &sound).unwrap();
        fixture.archive.verify(&reader).await.unwrap();
    }
}

fn names(error: &ArchiveError, id: &PackId) -> bool {
    matches!(error, ArchiveError::Damaged { pack, .. } | ArchiveError::Newer { pack, .. } if pack == id)
}

#[tokio::test]
async fn a_truncated_or_swapped_pack_is_found_and_named() {
    let fixture = Fixture::new();
    let id = fixture.put(&"some text ".repeat(50), None).await;
    let other = fixture.put("another pack altogether", None).await;
    let sound = std::fs::read(fixture.file(&id)).unwrap();
    for len in 0..sound.len() {
        std::fs::write(fixture.file(&id), &sound[..len]).unwrap();
        let error = fixture.archive.get(&id).await.unwrap_err();
        assert!(names(&error, &id), "{len} bytes: {error}");
    }
    std::fs::copy(fixture.file(&other), fixture.file(&id)).unwrap();
    let error = fixture.archive.get(&id).await.unwrap_err();
    assert!(
        names(&error, &id) && error.to_string().contains("does not match its name"),
        "{error}"
    );
    assert_eq!(
        fixture.archive.list().await.unwrap().len(),
        2,
        "damaged packs stay listed"
    );
}

#[tokio::test]
async fn a_missing_base_is_named_with_the_pack_that_needs_it() {
    let fixture = Fixture::new();
    let bottom = fixture.put("bottom", None).await;
    let middle = fixture.put("bottom middle", Some(&bottom)).await;
    let top = fixture.put("bottom middle top", Some(&middle)).await;
    std::fs::remove_file(fixture.file(&bottom)).unwrap();
    let error = fixture.archive.get(&top).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("pack {middle} cannot be read: its base {bottom} is not in the archive")
    );
}

#[tokio::test]
async fn putting_again_heals_a_damaged_pack() {
    let fixture = Fixture::new();
    let id = fixture.put("precious", None).await;
    std::fs::write(fixture.file(&id), b"CPAK\x01garbage").unwrap();
    assert_eq!(fixture.put("precious", None).await, id);
    assert_eq!(fixture.archive.get(&id).await.unwrap(), "precious");
}

#[tokio::test]
async fn a_damaged_base_does_not_stop_archiving() {
    let fixture = Fixture::new();
    let base = fixture.put("base", None).await;
    std::fs::write(fixture.file(&base), b"garbage").unwrap();
    let info = fixture
        .archive
        .put(Bytes::from_static(b"next"), Some(&base))
        .await
        .unwrap();
    assert_eq!(info.base, None);
    assert_eq!(fixture.archive.get(&info.id).await.unwrap(), "next");
}

#[tokio::test]
async fn a_newer_format_is_refused_and_not_overwritten() {
    let fixture = Fixture::new();
    let id = fixture.put("from the future", None).await;
    let mut bytes = std::fs::read(fixture.file(&id)).unwrap();
    bytes[4] = 3;
    std::fs::write(fixture.file(&id), &bytes).unwrap();
    let result = fixture
        .archive
        .put(Bytes::from_static(b"from the future"), None)
        .await;
    assert!(matches!(result, Err(ArchiveError::Newer { pack, found: 3 }) if pack == id));
    assert_eq!(std::fs::read(fixture.file(&id)).unwrap(), bytes);
}

#[tokio::test]
async fn a_frame_larger_than_declared_is_refused() {
    let fixture = Fixture::new();
    let bomb = pack::forged(b"x", &vec![0; 50_000_000], &PackHistory::default());
    let id = PackId::of(b"x", None);
    std::fs::create_dir_all(fixture.file(&id).parent().unwrap()).unwrap();
    std::fs::write(fixture.file(&id), bomb).unwrap();
    let error = fixture.archive.get(&id).await.unwrap_err();
    assert!(
        names(&error, &id) && error.to_string().contains("too small"),
        "{error}"
    );
}

#[tokio::test]
async fn a_pack_that_would_fill_the_memory_is_refused_and_one_that_is_as_repetitive_comes_back() {
    let fixture = Fixture::new();
    let plain = Bytes::from(vec![0; 80 << 20]);
    let id = PackId::of(&plain, None);
    let bomb = pack::forged(&plain, &plain, &PackHistory::default());
    assert!(bomb.len() < 10_000);
    std::fs::create_dir_all(fixture.file(&id).parent().unwrap()).unwrap();
    std::fs::write(fixture.file(&id), bomb).unwrap();
    let error = fixture.archive.get(&id).await.unwrap_err();
    assert!(
        names(&error, &id) && error.to_string().contains("cannot stand for"),
        "{error}"
    );
    let info = fixture.archive.put(plain.clone(), None).await.unwrap();
    assert_eq!((info.id, info.stored_bytes >= 16 << 10), (id, true));
    assert!(fixture.archive.get(&id).await.unwrap() == plain);
}

fn decoded_frame(plain: &[u8]) -> DecodedFrame {
    DecodedFrame {
        plain: plain.to_vec(),
        unpaid: 0,
    }
}

/// Each pack repeats the one below and adds as much again: a few kilobytes would be gigabytes.
#[tokio::test]
async fn a_chain_of_packs_that_would_fill_the_memory_is_refused() {
    let fixture = Fixture::new();
    let mut history = PackHistory::default();
    let mut ids = Vec::new();
    let mut stored = 0;
    for megabytes in [30, 60, 90] {
        let plain = vec![0; megabytes << 20];
        let id = PackId::of(&plain, history.top.as_ref());
        let forged = pack::forged(&plain, &plain, &history);
        stored += forged.len();
        std::fs::create_dir_all(fixture.file(&id).parent().unwrap()).unwrap();
        std::fs::write(fixture.file(&id), forged).unwrap();
        history.push(id, decoded_frame(&plain));
        ids.push((id, plain.len()));
    }
    assert!(stored < 30_000, "{stored}");
    for (id, length) in &ids[..2] {
        assert_eq!(fixture.archive.get(id).await.unwrap().len(), *length);
    }
    let error = fixture.archive.get(&ids[2].0).await.unwrap_err();
    assert!(
        names(&error, &ids[2].0) && error.to_string().contains("cannot stand for"),
        "{error}"
    );
}

/// What we write ourselves is never taken for such a chain, whatever it holds.
#[tokio::test]
async fn a_session_that_repeats_itself_more_than_any_other_comes_back_from_every_compaction() {
    let fixture = Fixture::new();
    let mut base = None;
    for megabytes in [20, 40, 60, 80] {
        let plain = Bytes::from(vec![0; megabytes << 20]);
        let info = fixture.archive.put(plain.clone(), base.as_ref()).await;
        let id = info.unwrap().id;
        assert!(fixture.archive.get(&id).await.unwrap() == plain);
        base = Some(id);
    }
}

#[tokio::test]
async fn a_chain_that_is_longer_than_any_that_is_written_is_refused() {
    let fixture = Fixture::new();
    let mut history = PackHistory::default();
    let mut top = PackId([0; 32]);
    for n in 0..=MAX_DEPTH + 1 {
        let plain = format!("pack {n}").into_bytes();
        top = PackId::of(&plain, history.top.as_ref());
        std::fs::create_dir_all(fixture.file(&top).parent().unwrap()).unwrap();
        let forged = pack::encode(&plain, &history, &top, None).unwrap();
        std::fs::write(fixture.file(&top), forged).unwrap();
        history.push(top, decoded_frame(&plain));
    }
    let error = fixture.archive.get(&top).await.unwrap_err();
    assert!(
        names(&error, &top) && error.to_string().contains("chain"),
        "{error}"
    );
    let below = fixture.archive.info(&top).await.unwrap().base.unwrap();
    assert_eq!(
        fixture.archive.get(&below).await.unwrap(),
        format!("pack {MAX_DEPTH}")
    );
}

#[tokio::test]
async fn a_chain_that_does_not_count_down_is_refused() {
    let fixture = Fixture::new();
    let bottom = fixture.put("bottom", None).await;
    let mut history = PackHistory::default();
    history.push(bottom, decoded_frame(b"bottom"));
    history.packs = 7;
    let id = PackId::of(b"bottom and top", Some(&bottom));
    std::fs::create_dir_all(fixture.file(&id).parent().unwrap()).unwrap();
    let forged = pack::encode(b"bottom and top", &history, &id, None).unwrap();
    std::fs::write(fixture.file(&id), forged).unwrap();
    let error = fixture.archive.get(&id).await.unwrap_err();
    assert!(
        names(&error, &id) && error.to_string().contains("chain"),
        "{error}"
    );
}

#[tokio::test]
async fn a_write_that_was_cut_off_leaves_no_pack() {
    let fixture = Fixture::new();
    let id = PackId::of(b"cut off", None);
    // What a process leaves that dies between staging and publishing.
    let mut staged = fixture.file(&id).into_os_string();
    staged.push("#1");
    std::fs::create_dir_all(fixture.file(&id).parent().unwrap()).unwrap();
    std::fs::write(&staged, b"half a pa").unwrap();
    assert_eq!(fixture.archive.list().await.unwrap(), vec![]);
    assert!(matches!(
        fixture.archive.get(&id).await,
        Err(ArchiveError::Missing { .. })
    ));
    assert_eq!(fixture.put("cut off", None).await, id);
    assert_eq!(fixture.archive.get(&id).await.unwrap(), "cut off");
}

#[tokio::test]
async fn a_store_that_cannot_be_written_says_so_and_keeps_nothing_half_done() {
    let fixture = Fixture::new();
    // Root may write to a read-only directory, but nobody creates a file below a file.
    std::fs::write(fixture.root().join("packs"), b"in the way").unwrap();
    let error = fixture
        .archive
        .put(Bytes::from_static(b"text"), None)
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("cannot "), "{error}");
    assert_eq!(fixture.files(), vec![fixture.root().join("packs")]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_directory_is_an_error_and_stays_empty() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let set = |mode| std::fs::set_permissions(fixture.root(), PermissionsExt::from_mode(mode));
    set(0o500).unwrap();
    let result = fixture.archive.put(Bytes::from_static(b"text"), None).await;
    let writable = std::fs::write(fixture.root().join("probe"), b"").is_ok();
    set(0o700).unwrap();
    if writable {
        assert!(result.is_ok(), "permissions do not bind this user");
    } else {
        assert!(matches!(result, Err(ArchiveError::Store { .. })));
        assert_eq!(fixture.files(), Vec::<PathBuf>::new());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_0600_directories_0700_and_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let mode = |path: &FsPath| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let first = fixture.file(&fixture.put("first", None).await);
    // What an earlier version, or a curious user, left open is closed by the next write.
    std::fs::set_permissions(
        fixture.root().join("packs"),
        PermissionsExt::from_mode(0o777),
    )
    .unwrap();
    fixture.put("second", None).await;
    assert_eq!(mode(&first), 0o600);
    for dir in [
        first.parent().unwrap(),
        &fixture.root().join("packs"),
        &fixture.root(),
    ] {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
    assert_eq!(mode(&fixture.dir.path().join("data")), 0o700);
}

#[tokio::test]
async fn foreign_files_are_not_packs() {
    let fixture = Fixture::new();
    let id = fixture.put("real", None).await;
    let shard = fixture.file(&id).parent().unwrap().to_owned();
    std::fs::write(shard.join("notes.txt"), b"mine").unwrap();
    std::fs::write(
        fixture.root().join("packs").join(format!("{id}.pack")),
        b"misplaced",
    )
    .unwrap();
    assert_eq!(fixture.archive.list().await.unwrap(), vec![id]);
}

/// Lifelike lines: words that recur, numbers and ids that do not.
struct Lines {
    noise: blake3::OutputReader,
    count: u64,
}

impl Lines {
    const WORDS: [&str; 24] = [
        "error",
        "the",
        "file",
        "src/main.rs",
        "fn",
        "let",
        "result",
        "build",
        "test",
        "failed",
        "expected",
        "found",
        "line",
        "column",
        "return",
        "async",
        "await",
        "config",
        "value",
        "token",
        "window",
        "user",
        "request",
        "response",
    ];

    fn new() -> Lines {
        Lines {
            noise: blake3::Hasher::new().finalize_xof(),
            count: 0,
        }
    }

    fn next_line(&mut self) -> String {
        let mut bytes = [0; 120];
        self.noise.fill(&mut bytes);
        self.count += 1;
        let words: Vec<&str> = bytes[8..]
            .iter()
            .map(|byte| Self::WORDS[usize::from(*byte) % Self::WORDS.len()])
            .collect();
        let id = blake3::hash(&bytes).to_hex();
        format!(
            "{{\"role\":\"assistant\",\"n\":{},\"id\":\"{}\",\"content\":\"{}\"}}\n",
            self.count,
            id.get(..16).unwrap(),
            words.join(" ")
        )
    }

    fn take(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next_line()).collect()
    }
}

#[tokio::test]
async fn twenty_compactions_cost_little_more_than_the_transcript() {
    let archive = ObjectArchive::new(Arc::new(InMemory::new()));
    let mut lines = Lines::new();
    let mut input = lines.take(300);
    let mut transcript = input.concat();
    let mut base = None;
    let mut stored = 0;
    for version in 1..=20 {
        let info = archive
            .put(input.concat().into(), base.as_ref())
            .await
            .unwrap();
        stored += info.stored_bytes;
        base = Some(info.id);
        let new = lines.take(200);
        transcript.push_str(&new.concat());
        let summary = format!("<COMPACT-SUMMARY v{version}> {}", lines.take(4).concat());
        let recent = input.split_off(input.len() - input.len() / 3);
        input = [vec![summary], recent, new].concat();
    }
    let whole = zstd::bulk::compress(transcript.as_bytes(), 9)
        .unwrap()
        .len() as u64;
    let ratio = stored as f64 / whole as f64;
    assert!(
        ratio <= 1.3,
        "{stored} bytes stored for {whole} of transcript: {ratio:.2}"
    );
    assert!(archive.get(&base.unwrap()).await.is_ok());
}

#[tokio::test]
async fn history_beyond_its_limit_is_forgotten_alike_by_writer_and_reader() {
    let archive = ObjectArchive::new(Arc::new(InMemory::new()));
    let mut noise = blake3::Hasher::new().finalize_xof();
    let mut base = None;
    let mut plains = Vec::new();
    // Sizes below, around and above the limit, each sharing its first half with the one before.
    for size in [3 << 20, 4 << 20, 9 << 20, 1 << 20, 8 << 20, 2 << 20] {
        let mut plain = vec![0; size];
        noise.fill(&mut plain);
        let last = plains
            .last()
            .map_or(&[][..], |(_, last): &(PackId, Bytes)| last);
        let shared = last.len().min(size / 2);
        plain[..shared].copy_from_slice(&last[..shared]);
        let info = archive
            .put(plain.clone().into(), base.as_ref())
            .await
            .unwrap();
        assert!(
            info.stored_bytes < (size - shared + size / 20) as u64,
            "{info:?}"
        );
        base = Some(info.id);
        plains.push((info.id, plain.into()));
    }
    for (id, plain) in plains {
        assert_eq!(archive.get(&id).await.unwrap(), plain);
    }
}

#[tokio::test]
async fn four_megabytes_more_than_their_base_cost_little() {
    let archive = ObjectArchive::new(Arc::new(InMemory::new()));
    let mut lines = Lines::new();
    let mut text = String::new();
    while text.len() < 4 << 20 {
        text.push_str(&lines.next_line());
    }
    let first = archive.put(Bytes::from(text.clone()), None).await.unwrap();
    text.push_str(&lines.next_line());
    let second = archive
        .put(Bytes::from(text), Some(&first.id))
        .await
        .unwrap();
    assert!(second.stored_bytes < first.stored_bytes / 50, "{second:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packs_round_trip(plain: Vec<u8>, below: Vec<Vec<u8>>) {
        let mut history = PackHistory::default();
        for content in &below {
            history.push(PackId::of(content, history.top.as_ref()), decoded_frame(content));
        }
        let id = PackId::of(&plain, history.top.as_ref());
        let stored = pack::encode(&plain, &history, &id, None).unwrap();
        let head = pack::check(&stored).unwrap();
        prop_assert_eq!((head.plain_bytes, head.base), (plain.len() as u64, history.top));
        prop_assert_eq!(usize::from(head.depth), below.len());
        prop_assert_eq!(pack::decode(&stored, &id, &history, None).unwrap().plain, plain);
    }

    #[test]
    fn no_bytes_make_reading_panic(bytes: Vec<u8>) {
        let mut forged = b"CPAK\x01".to_vec();
        forged.extend_from_slice(&bytes);
        prop_assert!(pack::check(&bytes).is_err() && pack::check(&forged).is_err());
        let _ = pack::decode(&forged, &PackId([0; 32]), &PackHistory::default(), None);
    }
}

fn seal() -> Seal {
    Seal::new([42; 32])
}

/// Encryption before anything leaves the process.
#[tokio::test]
async fn a_sealed_archive_conforms() {
    conformance::suite(&Fixture::new().archive.with_seal(seal())).await;
}

#[tokio::test]
async fn without_its_key_a_pack_is_locked_and_damage_is_still_told_from_that() {
    let fixture = Fixture::new();
    let sealed = fixture.archive.clone().with_seal(seal());
    let plain = Bytes::from("a secret of the user's ".repeat(50));
    let id = sealed.put(plain.clone(), None).await.unwrap().id;
    assert_eq!(sealed.get(&id).await.unwrap(), plain);
    for other in [
        fixture.archive.clone(),
        fixture.archive.clone().with_seal(Seal::new([1; 32])),
    ] {
        let error = other.get(&id).await.unwrap_err();
        assert!(
            matches!(error, ArchiveError::Locked { pack } if pack == id),
            "{error}"
        );
    }
    let clear = fixture.put("said in the clear", None).await;
    assert_eq!(sealed.get(&clear).await.unwrap(), "said in the clear");
    let mut bytes = std::fs::read(fixture.file(&id)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(fixture.file(&id), bytes).unwrap();
    assert!(names(&sealed.verify(&id).await.unwrap_err(), &id));
}

/// A store whose conditional writes are broken in one way or another.
#[derive(Debug)]
struct Broken {
    store: InMemory,
    how: Exclusion,
    yields: usize,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "broken: {:?}", self.how)
    }
}

#[async_trait]
impl ObjectStore for Broken {
    async fn put_opts(
        &self,
        location: &Path,
        payload: object_store::PutPayload,
        opts: object_store::PutOptions,
    ) -> object_store::Result<object_store::PutResult> {
        if opts.mode != PutMode::Create {
            return self.store.put_opts(location, payload, opts).await;
        }
        match self.how {
            Exclusion::Works => self.store.put_opts(location, payload, opts).await,
            Exclusion::Ignored => self.store.put(location, payload).await,
            Exclusion::Refused => Err(object_store::Error::NotImplemented {
                operation: "conditional put".to_owned(),
                implementer: self.to_string(),
            }),
            Exclusion::Races => {
                if self.store.head(location).await.is_ok() {
                    return self.store.put_opts(location, payload, opts).await;
                }
                for _ in 0..self.yields {
                    tokio::task::yield_now().await;
                }
                self.store.put(location, payload).await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: object_store::PutMultipartOptions,
    ) -> object_store::Result<Box<dyn object_store::MultipartUpload>> {
        self.store.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: object_store::GetOptions,
    ) -> object_store::Result<object_store::GetResult> {
        self.store.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: futures::stream::BoxStream<'static, object_store::Result<Path>>,
    ) -> futures::stream::BoxStream<'static, object_store::Result<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(
        &self,
        prefix: Option<&Path>,
    ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(
        &self,
        prefix: Option<&Path>,
    ) -> object_store::Result<object_store::ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: object_store::CopyOptions,
    ) -> object_store::Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn a_store_without_conditional_writes_is_detected_and_conforms() {
    for how in [
        Exclusion::Works,
        Exclusion::Ignored,
        Exclusion::Races,
        Exclusion::Refused,
    ] {
        let store = Arc::new(Broken {
            store: InMemory::new(),
            how,
            yields: 3,
        });
        let archive = ObjectArchive::new(store.clone());
        assert_eq!(archive.exclusion().await.unwrap(), how);
        conformance::suite(&archive).await;
        // The next process believes what was found; it does not try again.
        let next = ObjectArchive::new(store.clone());
        assert_eq!(next.exclusion().await.unwrap(), how);
        let objects: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(objects.len(), 1, "only the verdict is left: {objects:?}");
    }
}

/// What `COMPACT_TEST_S3` names: a server that speaks S3, without anybody's data in it. `cargo xtask
/// test` starts one. Without it, what needs it passes without having looked.
fn bucket(name: &str) -> Option<Bucket> {
    let endpoint = std::env::var("COMPACT_TEST_S3").ok()?;
    Some(Bucket {
        name: "compact-test".to_owned(),
        prefix: format!("{name}-{}", std::process::id()),
        endpoint: Some(endpoint),
        region: Some("us-east-1".to_owned()),
        ..Bucket::default()
    })
}

#[tokio::test]
async fn a_server_that_speaks_s3_conforms() {
    let Some(bucket) = bucket("conforms") else {
        return;
    };
    let archive = ObjectArchive::in_bucket(&bucket).unwrap();
    assert_eq!(archive.exclusion().await.unwrap(), Exclusion::Works);
    conformance::suite(&archive).await;
}

#[tokio::test]
async fn a_server_takes_large_packs_in_parts_encrypted_on_both_sides() {
    let Some(bucket) = bucket("large") else {
        return;
    };
    let bucket = Bucket {
        encryption: BucketEncryption::Kms(None),
        ..bucket
    };
    let archive = ObjectArchive::in_bucket(&bucket).unwrap().with_seal(seal());
    let mut plain = vec![0; PART_BYTES * 2 + 77];
    blake3::Hasher::new().finalize_xof().fill(&mut plain);
    let plain = Bytes::from(plain);
    let info = archive.put(plain.clone(), None).await.unwrap();
    assert!(info.stored_bytes > 2 * PART_BYTES as u64);
    assert_eq!(archive.get(&info.id).await.unwrap(), plain);
    let meta = archive
        .store
        .head(&ObjectKind::Packs.location(&info.id))
        .await
        .unwrap();
    assert!(
        meta.e_tag.is_some_and(|tag| tag.contains("-3")),
        "three parts"
    );
}

#[tokio::test]
async fn a_flipped_bit_on_a_server_is_found_and_named() {
    let Some(bucket) = bucket("flipped") else {
        return;
    };
    let archive = ObjectArchive::in_bucket(&bucket).unwrap();
    let plain = Bytes::from("said once ".repeat(100));
    let id = archive.put(plain, None).await.unwrap().id;
    let stored = archive
        .store
        .get(&ObjectKind::Packs.location(&id))
        .await
        .unwrap();
    let mut bytes = stored.bytes().await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    let place = ObjectKind::Packs.location(&id);
    archive.store.put(&place, bytes.into()).await.unwrap();
    let other = ObjectArchive::in_bucket(&bucket).unwrap();
    assert!(names(&other.verify(&id).await.unwrap_err(), &id));
}
