//! Random conversations as agents make them, and one call to compact them.

use compact_core::engine::{
    self, CompactionInput, CompactionOutcome, Originals, Prior, RoomClaims, ViewBounds,
};
use compact_core::error::CompactError;
use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry, EntryId, EntryMeta, Role};
use compact_core::policy::{KeepRecent, Policy, Prune};
use compact_core::redact::Redactor;
use compact_core::token::{
    Chars4, Estimator, EstimatorExt, Heuristic, TokenAccount, TokenCache, Tokens,
};
use compact_core::wire::{Placement, ReasoningRule, WireRules};
use proptest::prelude::*;

/// One step of an agent's life.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    User(String),
    Say(String),
    Protected(String),
    Developer(String),
    /// Parallel calls; `thinks` puts bound reasoning before them.
    Tools {
        calls: Vec<(String, String)>,
        thinks: bool,
    },
    /// A result that nothing asked for.
    Orphan(String),
    /// A call that nothing answers.
    Forgotten(String),
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z_/.0-9 ,:\n]{0,80}",
        "\\PC{0,40}",
        ("[a-z]{3,9}", 1usize..400).prop_map(|(word, n)| format!("{word}/src_{n}.rs: ").repeat(n)),
        Just("日本語の長い文章です。".repeat(20)),
        Just("You must never touch deploy/prod.yaml.".to_owned()),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => text().prop_map(Step::User),
        3 => text().prop_map(Step::Say),
        1 => "[a-z ]{1,60}".prop_map(Step::Protected),
        1 => "[a-z ]{1,60}".prop_map(Step::Developer),
        6 => (prop::collection::vec((text(), text()), 1..4), any::<bool>())
            .prop_map(|(calls, thinks)| Step::Tools { calls, thinks }),
        1 => text().prop_map(Step::Orphan),
        1 => text().prop_map(Step::Forgotten),
    ]
}

pub(crate) fn conversation() -> impl Strategy<Value = Conversation> {
    (prop::collection::vec(step(), 1..40), any::<bool>()).prop_map(|(steps, system)| {
        let mut entries = Vec::new();
        if system {
            entries.push(Entry::from_text(
                "sys",
                Role::System,
                "You are a careful engineer.",
            ));
        }
        entries.extend(lived(&steps, 0));
        Conversation {
            entries,
            ..Conversation::default()
        }
    })
}

pub(crate) fn lived(steps: &[Step], first: usize) -> Vec<Entry> {
    steps
        .iter()
        .enumerate()
        .flat_map(|(i, step)| entries(step, first + i))
        .collect()
}

fn entries(step: &Step, i: usize) -> Vec<Entry> {
    let entry = |name: &str, role, blocks| Entry {
        id: EntryId(format!("{name}{i}")),
        role,
        blocks,
        meta: EntryMeta::default(),
    };
    let call = |n: usize, text: &str| Block::ToolCall {
        id: format!("call_{i}_{n}"),
        name: "run".to_owned(),
        arguments: serde_json::json!({ "cmd": text }).to_string(),
    };
    let result = |n: usize, text: &str| Block::ToolResult {
        call: format!("call_{i}_{n}"),
        content: text.to_owned(),
        is_error: false,
    };
    match step {
        Step::User(text) => vec![Entry::from_text(format!("u{i}"), Role::User, text.clone())],
        Step::Say(text) => vec![Entry::from_text(
            format!("a{i}"),
            Role::Assistant,
            text.clone(),
        )],
        Step::Developer(text) => vec![Entry::from_text(
            format!("d{i}"),
            Role::Developer,
            text.clone(),
        )],
        Step::Protected(text) => {
            let mut pinned = Entry::from_text(format!("p{i}"), Role::User, text.clone());
            pinned.meta.flags.insert("protected".to_owned());
            vec![pinned]
        }
        Step::Orphan(text) => vec![entry("o", Role::Tool, vec![result(9, text)])],
        Step::Forgotten(text) => vec![entry("f", Role::Assistant, vec![call(8, text)])],
        Step::Tools { calls, thinks } => {
            let mut blocks = Vec::new();
            if *thinks {
                blocks.push(Block::Reasoning {
                    text: "hm".to_owned(),
                    replay_bytes: 400,
                });
            }
            blocks.extend(calls.iter().enumerate().map(|(n, (args, _))| call(n, args)));
            let mut all = vec![entry("c", Role::Assistant, blocks)];
            all.extend(
                calls.iter().enumerate().map(|(n, (_, out))| {
                    entry(&format!("r{n}-"), Role::Tool, vec![result(n, out)])
                }),
            );
            all
        }
    }
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    (
        1u32..8,
        1u32..6,
        prop_oneof![
            Just(Prune::Fifo),
            Just(Prune::Recency),
            Just(Prune::StageAware),
            Just(Prune::Semantic)
        ],
        prop_oneof![
            4 => Just(KeepRecent::Recent),
            1 => Just(KeepRecent::LastUserMessage),
            1 => Just(KeepRecent::None)
        ],
        prop_oneof![
            Just(Placement::AssistantMessage),
            Just(Placement::UserMessage),
            Just(Placement::SystemSuffix),
            Just(Placement::ToolPair),
            Just(Placement::NewSessionPrompt)
        ],
    )
        .prop_map(
            |(keep_recent_turns, keep_tool_io_pairs, prune, keep_recent, placement)| Policy {
                keep_recent_turns,
                keep_tool_io_pairs,
                prune,
                keep_recent,
                placement,
                ..Policy::default()
            },
        )
}

/// How one test counts and what its wire demands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub heuristic: bool,
    pub reasoning: ReasoningRule,
    /// Roles alternate, a person speaks first and last.
    pub strict: bool,
}

impl Setting {
    pub(crate) const PLAIN: Setting = Setting {
        heuristic: false,
        reasoning: ReasoningRule::Keep,
        strict: false,
    };
}

pub(crate) fn setting() -> impl Strategy<Value = Setting> {
    let reasoning = prop_oneof![
        Just(ReasoningRule::Keep),
        Just(ReasoningRule::StripAfterEdit),
        Just(ReasoningRule::StripOutsideLoop),
    ];
    (any::<bool>(), reasoning, any::<bool>()).prop_map(|(heuristic, reasoning, strict)| Setting {
        heuristic,
        reasoning,
        strict,
    })
}

impl Setting {
    pub(crate) fn estimator(self) -> Box<dyn Estimator> {
        if self.heuristic {
            Box::new(Heuristic)
        } else {
            Box::new(Chars4)
        }
    }

    pub(crate) fn rules(self) -> WireRules {
        WireRules {
            reasoning: self.reasoning,
            alternation: self.strict,
            opens_with_user: self.strict,
            ends_with_user: self.strict,
            ..WireRules::LENIENT
        }
    }
}

pub(crate) fn history_tokens(conversation: &Conversation, setting: Setting) -> Tokens {
    account(conversation, setting).history
}

fn account(conversation: &Conversation, setting: Setting) -> TokenAccount {
    let hashes = EntryHash::from_entries(&conversation.entries);
    TokenAccount::count_conversation(
        conversation,
        &hashes,
        &*setting.estimator(),
        &mut TokenCache::default(),
    )
}

/// A compaction in a window, with the budget that nobody named, and that budget.
pub(crate) fn compact_in(
    window: Tokens,
    conversation: &Conversation,
    policy: &Policy,
    setting: Setting,
    prior: Option<&Prior>,
) -> (Tokens, Result<CompactionOutcome, CompactError>) {
    with_input(conversation, policy, setting, prior, |input| {
        let bounds = ViewBounds::from_account(window, policy, &account(conversation, setting));
        let claims = engine::room_claims(&input).unwrap_or_default();
        let tokens = |units| setting.estimator().to_tokens(units);
        let budget = bounds.budget_for(tokens(claims.total()), tokens(claims.summary));
        let limit = Some(bounds.summary_limit(budget));
        let made = engine::compact(&input.budget(budget).summary_limit(limit));
        (budget, made)
    })
}

pub(crate) fn compact(
    conversation: &Conversation,
    policy: &Policy,
    budget: Tokens,
    setting: Setting,
    prior: Option<&Prior>,
) -> Result<CompactionOutcome, CompactError> {
    with_input(conversation, policy, setting, prior, |input| {
        engine::compact(&input.budget(budget))
    })
}

/// What a view must hold, whatever its budget.
pub(crate) fn claims(
    conversation: &Conversation,
    policy: &Policy,
    setting: Setting,
) -> Result<RoomClaims, CompactError> {
    with_input(conversation, policy, setting, None, |input| {
        engine::room_claims(&input)
    })
}

/// Everything a compaction is a function of, but for its budget.
fn with_input<T>(
    conversation: &Conversation,
    policy: &Policy,
    setting: Setting,
    prior: Option<&Prior>,
    run: impl FnOnce(CompactionInput<'_>) -> T,
) -> T {
    let hashes = EntryHash::from_entries(&conversation.entries);
    let account = account(conversation, setting);
    let ledger = engine::session_ledger(conversation, &hashes, prior, &Redactor::default());
    let (estimator, rules) = (setting.estimator(), setting.rules());
    let input = CompactionInput::new(
        conversation,
        &hashes,
        &account,
        &ledger,
        &*estimator,
        Tokens(0),
    );
    run(input
        .session_id("s")
        .prior(prior)
        .policy(policy)
        .rules(&rules)
        .originals(Originals::Archived))
}

pub(crate) fn prior_of(
    made: &engine::Compaction,
    conversation: &Conversation,
    before: Option<&Prior>,
) -> Prior {
    let hashes = EntryHash::from_entries(&conversation.entries);
    let ledger = engine::session_ledger(conversation, &hashes, before, &Redactor::default());
    Prior::from_compaction(made, ledger)
}
