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

    /// A compaction of these words.
    fn input(&self) -> CompactionInput<'_> {
        self.input_counted_by(&Chars4)
    }

    fn input_counted_by<'a>(&'a self, estimator: &'a dyn Estimator) -> CompactionInput<'a> {
        CompactionInput::new(
            &self.conversation,
            &self.hashes,
            &self.account,
            &self.ledger,
            estimator,
            Tokens(1_000),
        )
        .session_id("s")
        .original("bytes")
        .originals(Originals::Archived)
    }
}

fn receipt_id(input: CompactionInput<'_>) -> String {
    match engine::compact(&input) {
        Ok(CompactionOutcome::Compacted(made)) => made.receipt.receipt_id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whatever_can_change_a_view_or_its_archive_changes_the_receipt() {
    let (told, other) = (Told::new("go on", &[]), Told::new("go back", &[]));
    let flagged = Told::new("go on", &["protected"]);
    let policy = Policy::default();
    let input = || told.input();
    let prior = Prior {
        receipt_id: "before".to_owned(),
        summary_version: 1,
        view: Vec::new(),
        ledger: Ledger::default().into(),
        trimmed: 0,
    };
    let brief = Policy {
        keep_recent_turns: policy.keep_recent_turns + 1,
        ..policy.clone()
    };
    let protects = Policy {
        protected_entries: vec![told.hashes[3]],
        ..policy
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
    let ids = BTreeMap::from([
        ("same", receipt_id(input())),
        ("words", receipt_id(other.input())),
        ("flags", receipt_id(flagged.input())),
        ("prior", receipt_id(input().prior(Some(&prior)))),
        ("policy", receipt_id(input().policy(&brief))),
        ("protected", receipt_id(input().policy(&protects))),
        ("budget", receipt_id(input().budget(Tokens(1_001)))),
        (
            "summary limit",
            receipt_id(input().summary_limit(Some(Tokens(500)))),
        ),
        ("bytes", receipt_id(input().original("other bytes"))),
        ("estimator", receipt_id(told.input_counted_by(&Heuristic))),
        ("wire", receipt_id(input().rules(&strict))),
        ("redaction", receipt_id(input().redactor(&on))),
        (
            "redacted archive",
            receipt_id(input().originals(Originals::Redacted(&on))),
        ),
        ("no archive", receipt_id(input().originals(Originals::Gone))),
        ("note", receipt_id(input().note(Some("hurry")))),
        ("meaning", receipt_id(input().meaning(Some(&meaning)))),
        ("prose", receipt_id(input().content(&prose))),
    ]);
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, id) in &ids {
        names.entry(id).or_default().push(name);
    }
    let shared: Vec<_> = names.values().filter(|names| names.len() > 1).collect();
    assert_eq!(shared, Vec::<&Vec<&str>>::new());
    assert_eq!(receipt_id(input().session_id("t")), ids["same"]);
}
