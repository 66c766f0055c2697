//! The quiz of the recall benchmark, in small: on disk, and in memory.

use std::sync::Arc;

use compact_adapters::archive::ObjectArchive;
use compact_adapters::catalog::SqliteCatalog;
use compact_adapters::recall::SqliteIndex;
use compact_eval::quiz::{Exam, Quiz};
use compact_runtime::Recall;

#[tokio::test]
async fn the_right_entry_comes_first_among_its_likes() {
    let folder = tempfile::tempdir().unwrap();
    let recall = Recall {
        archive: Arc::new(ObjectArchive::open(folder.path()).unwrap()),
        catalog: Arc::new(SqliteCatalog::open(&folder.path().join("catalog.db")).unwrap()),
        index: Arc::new(SqliteIndex::open(&folder.path().join("recall.db")).unwrap()),
        redactor: Arc::default(),
    };
    let quiz = Quiz::new(5, 40, 6_000, 20);
    let exam = Exam::prepare(&quiz, &recall).await.unwrap();
    assert_eq!(recall.update_index().await.unwrap().added, 40);
    assert_eq!(recall.update_index().await.unwrap().added, 0);
    let result = exam.ask_all().await.unwrap();
    assert!(
        result.first >= 18,
        "{} of 20: {:#?}",
        result.first,
        result.missed
    );
}
