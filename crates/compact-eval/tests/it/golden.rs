//! The summaries of the example sessions in `docs/summaries`, to the byte: a change of the engine shows here as a change
//! of text that a person can read. `UPDATE_EXPECT=1 cargo test -p compact-eval golden` accepts it.

use compact_core::policy::Policy;
use compact_eval::compaction::EvalEngine;
use compact_eval::fact_check::ViewText;
use compact_eval::generate::{self, GeneratedSession};
use expect_test::{ExpectFile, expect_file};

fn check(session: &GeneratedSession, share: f64, golden: &ExpectFile) {
    let summary = || {
        let engine = EvalEngine::new(Policy::default()).unwrap();
        ViewText::from_session(session, share, &engine)
            .unwrap()
            .summary
    };
    let first = summary();
    assert_eq!(first, summary(), "the same input gives the same bytes");
    golden.assert_eq(&first);
}

#[test]
fn golden_summary_of_the_coding_session() {
    let session = generate::coding_session(11, 150_000);
    check(
        &session,
        0.04,
        &expect_file!["../../../../docs/summaries/coding.md"],
    );
}

#[test]
fn golden_summary_of_the_support_session() {
    let session = generate::support_session(12, 20_000);
    check(
        &session,
        0.15,
        &expect_file!["../../../../docs/summaries/support.md"],
    );
}

#[test]
fn golden_summary_of_the_research_session() {
    let session = generate::research_session(13, 60_000);
    check(
        &session,
        0.06,
        &expect_file!["../../../../docs/summaries/research.md"],
    );
}
