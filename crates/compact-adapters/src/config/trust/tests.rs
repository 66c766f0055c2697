#![cfg(unix)]

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

struct Fixture {
    folder: TempDir,
    store: TrustStore,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("repo")).unwrap();
        let store = TrustStore::new(folder.path().join("home/compact/trust"));
        Fixture { folder, store }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("repo").join(name)
    }

    fn write(&self, name: &str, content: &str) -> FileText {
        fs::write(self.file(name), content).unwrap();
        self.read(name)
    }

    fn read(&self, name: &str) -> FileText {
        FileText::read_regular(&self.file(name)).unwrap()
    }

    fn records(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.store.folder).unwrap();
        found.map(|entry| entry.unwrap().path()).collect()
    }
}

#[test]
fn a_file_is_trusted_as_it_was_and_where_it_was() {
    let f = Fixture::new();
    let text = f.write("compact.yaml", "storage: {path: /x}\n");
    assert!(!f.store.trusts(&text));
    f.store.record(&text).unwrap();
    assert!(f.store.trusts(&f.read("compact.yaml")));
    assert!(
        !f.store
            .trusts(&f.write("compact.yaml", "storage: {path: /x}\n\n"))
    );
    assert!(
        f.store
            .trusts(&f.write("compact.yaml", "storage: {path: /x}\n"))
    );
    assert!(
        !f.store
            .trusts(&f.write("compact.yml", "storage: {path: /x}\n"))
    );
    assert!(f.store.forget(&f.file("compact.yaml")).unwrap());
    assert!(!f.store.forget(&f.file("compact.yaml")).unwrap());
    assert!(!f.store.trusts(&f.read("compact.yaml")));
}

#[test]
fn a_link_is_not_the_file_that_it_leads_to() {
    let f = Fixture::new();
    f.store
        .record(&f.write("compact.yaml", "model: a\n"))
        .unwrap();
    symlink(f.file("compact.yaml"), f.file("link.yaml")).unwrap();
    assert!(!f.store.trusts(&f.read("link.yaml")));
    // A folder by another name is the same folder.
    let other = f.folder.path().join("other");
    symlink(f.folder.path().join("repo"), &other).unwrap();
    let text = FileText::read_regular(&other.join("compact.yaml")).unwrap();
    assert!(f.store.trusts(&text));
    // A link that is trusted ends to be when it leads elsewhere.
    f.store.record(&f.read("link.yaml")).unwrap();
    fs::remove_file(f.file("link.yaml")).unwrap();
    f.write("b.yaml", "model: b\n");
    symlink(f.file("b.yaml"), f.file("link.yaml")).unwrap();
    assert!(!f.store.trusts(&f.read("link.yaml")));
}

#[test]
fn records_are_private_and_whole() {
    let f = Fixture::new();
    let text = f.write("compact.yaml", "model: a\n");
    f.store.record(&text).unwrap();
    f.store.record(&text).unwrap();
    let records = f.records();
    assert_eq!(records.len(), 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&records[0]), mode(&f.store.folder)), (0o600, 0o700));
    let record: TrustRecord = serde_json::from_slice(&fs::read(&records[0]).unwrap()).unwrap();
    let path = fs::canonicalize(f.file("compact.yaml")).unwrap();
    let expected = TrustRecord {
        file: path.display().to_string(),
        blake3: blake3::hash(b"model: a\n").to_hex().to_string(),
    };
    assert_eq!(record, expected);
}

#[test]
fn a_record_that_others_may_write_is_none() {
    let f = Fixture::new();
    let text = f.write("compact.yaml", "model: a\n");
    f.store.record(&text).unwrap();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&f.records()[0], 0o666);
    assert!(!f.store.trusts(&text));
    set(&f.records()[0], 0o600);
    set(&f.store.folder, 0o777);
    assert!(!f.store.trusts(&text));
    set(&f.store.folder, 0o700);
    assert!(f.store.trusts(&text));
    for junk in ["", "{", "[]", "{\"file\": 1}"] {
        fs::write(&f.records()[0], junk).unwrap();
        assert!(!f.store.trusts(&text), "{junk}");
    }
}

#[test]
fn commands_that_trust_at_once_leave_whole_records() {
    let f = Fixture::new();
    let texts: Vec<FileText> = (0..8)
        .map(|n| f.write(&format!("{n}.yaml"), &format!("model: m{n}\n")))
        .collect();
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| f.store.record(text).unwrap());
        }
    });
    assert!(texts.iter().all(|text| f.store.trusts(text)));
}
