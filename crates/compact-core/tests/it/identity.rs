//! A receipt's name covers every input of a compaction: what could have come out otherwise, or was
//! archived otherwise, is another receipt.

use std::collections::BTreeMap;

use compact_core::engine::{self, CompactionInput, CompactionOutcome, Originals, Prior};
use compact_core::identity::EntryHash;
use compact_core::ledger::Ledger;
use compact_core::message::{Conversation, Entry, Role};
use compact_core::policy::Policy;
use compact_core::prompt::{ModelProse, SummaryContent};
use compact_core::redact::{RedactionRules, Redactor};
use compact_core::token::{Chars4, Estimator, Heuristic, TokenAccount, TokenCache, Tokens};
use compact_core::wire::WireRules;

/// A conversation with all that is measured of it.
struct Told {
    conversation: Conversation,
    hashes: Vec<EntryHash>,
    account: TokenAccount,
    ledger: Ledger,
}

impl Told {
    fn new(last: &str, flags: &[&str]) -> Told {
        let say = |i: usize| {
            let role = [Role::User, Role::Assistant][i % 2];
            Entry::from_text(
                format!("e{i}"),
                role,
                format!("src/case_{i}.rs ").repeat(40),
            )
        };
        let mut last = Entry::from_text("last", Role::User, last);
        last.meta.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let conversation = Conversation {
            entries: (0..30).map(say).chain([last]).collect(),
            ..Conversation::default()
        };
        let hashes = EntryHash::from_entries(&conversation.entries);
        let cache = &mut TokenCache::default();
        Told {
            account: TokenAccount::count_conversation(&conversation, &hashes, &Chars4, cache),
            ledger: engine::session_ledger(&conversation, &hashes, None, &Redactor::default()),
            conversation,
            hashes,
        }
    }

    /// The same inputs with these words.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a fresh input is laid under these words"
    )]
    fn put_into<'a>(&'a self, input: CompactionInput<'a>) -> CompactionInput<'a> {
        CompactionInput {
            conversation: &self.conversation,
            hashes: &self.hashes,
            account: &self.account,
            ledger: &self.ledger,
            ..input
        }
    }
}

fn receipt_id(input: &CompactionInput<'_>) -> String {
    // A new input is one more line here, and below.
    let CompactionInput {
        conversation: _, // "words", "flags"; its model and tools are in the bytes of `original`
        session_id: _,   // of the record, not of the receipt: two sessions may share one
        hashes: _,       // follow from the conversation
        account: _,      // follows from the conversation and the estimator
        prior: _,        // "prior"
        ledger: _,       // follows from the conversation, the prior and the redactor
        policy: _,       // "policy", "protected"
        budget: _,       // "budget"
        summary_limit: _, // "summary limit"
        original: _,     // "bytes"
        estimator: _,    // "estimator"
        rules: _,        // "wire"
        redactor: _,     // "redaction"
        beyond: _,       // "redacted archive", "no archive"
        note: _,         // "note"
        meaning: _,      // "meaning"
        words: _,        // "prose"
    } = input;
    match engine::compact(input) {
        Ok(CompactionOutcome::Compacted(made)) => made.receipt.receipt_id,
        other => panic!("{other:?}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each input")]
fn whatever_can_change_a_view_or_its_archive_changes_the_receipt() {
    let (told, other) = (Told::new("go on", &[]), Told::new("go back", &[]));
    let flagged = Told::new("go on", &["protected"]);
    let policy = Policy::default();
    let off = Redactor::default();
    let input = || {
        told.put_into(CompactionInput {
            conversation: &told.conversation,
            session_id: "s",
            hashes: &told.hashes,
            account: &told.account,
            prior: None,
            ledger: &told.ledger,
            policy: &policy,
            budget: Tokens(1_000),
            summary_limit: None,
            original: "bytes",
            estimator: &Chars4,
            rules: &WireRules::LENIENT,
            redactor: &off,
            beyond: Originals::Archived,
            note: None,
            meaning: None,
            words: &SummaryContent::Ledger,
        })
    };
    let prior = Prior {
        receipt_id: "before".to_owned(),
        summary_version: 1,
        view: Vec::new(),
        ledger: Ledger::default(),
    };
    let brief = Policy {
        keep_recent_turns: policy.keep_recent_turns + 1,
        ..policy.clone()
    };
    let protects = Policy {
        protected_entries: vec![told.hashes[3]],
        ..policy.clone()
    };
    let strict = WireRules {
        name: "strict",
        ..WireRules::LENIENT
    };
    let on = Redactor::new(&RedactionRules::default()).unwrap();
    let prose = SummaryContent::Prose(ModelProse {
        parts: vec!["It went well.".to_owned()],
        ..ModelProse::default()
    });
    let meaning = vec![vec![0.5]; told.hashes.len()];
    let heuristic: &dyn Estimator = &Heuristic;
    let ids = BTreeMap::from([
        ("same", receipt_id(&input())),
        ("words", receipt_id(&other.put_into(input()))),
        ("flags", receipt_id(&flagged.put_into(input()))),
        (
            "prior",
            receipt_id(&CompactionInput {
                prior: Some(&prior),
                ..input()
            }),
        ),
        (
            "policy",
            receipt_id(&CompactionInput {
                policy: &brief,
                ..input()
            }),
        ),
        (
            "protected",
            receipt_id(&CompactionInput {
                policy: &protects,
                ..input()
            }),
        ),
        (
            "budget",
            receipt_id(&CompactionInput {
                budget: Tokens(1_001),
                ..input()
            }),
        ),
        (
            "summary limit",
            receipt_id(&CompactionInput {
                summary_limit: Some(Tokens(500)),
                ..input()
            }),
        ),
        (
            "bytes",
            receipt_id(&CompactionInput {
                original: "other bytes",
                ..input()
            }),
        ),
        (
            "estimator",
            receipt_id(&CompactionInput {
                estimator: heuristic,
                ..input()
            }),
        ),
        (
            "wire",
            receipt_id(&CompactionInput {
                rules: &strict,
                ..input()
            }),
        ),
        (
            "redaction",
            receipt_id(&CompactionInput {
                redactor: &on,
                ..input()
            }),
        ),
        (
            "redacted archive",
            receipt_id(&CompactionInput {
                beyond: Originals::Redacted(&on),
                ..input()
            }),
        ),
        (
            "no archive",
            receipt_id(&CompactionInput {
                beyond: Originals::Gone,
                ..input()
            }),
        ),
        (
            "note",
            receipt_id(&CompactionInput {
                note: Some("hurry"),
                ..input()
            }),
        ),
        (
            "meaning",
            receipt_id(&CompactionInput {
                meaning: Some(&meaning),
                ..input()
            }),
        ),
        (
            "prose",
            receipt_id(&CompactionInput {
                words: &prose,
                ..input()
            }),
        ),
    ]);
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, id) in &ids {
        names.entry(id).or_default().push(name);
    }
    let shared: Vec<_> = names.values().filter(|names| names.len() > 1).collect();
    assert_eq!(shared, Vec::<&Vec<&str>>::new());
    let elsewhere = CompactionInput {
        session_id: "t",
        ..input()
    };
    assert_eq!(receipt_id(&elsewhere), ids["same"]);
}
