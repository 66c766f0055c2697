use proptest::prelude::*;

use super::*;
use crate::policy::{EconomyPolicy, Policy};
use crate::trigger::decide;
use crate::window::find_model;

const ANTHROPIC: CacheMultiples = CacheMultiples {
    read: 0.1,
    write: 1.25,
};

fn numbers(history: u64, view: u64) -> EconomyNumbers {
    EconomyNumbers {
        history: Tokens(history),
        view: Tokens(view),
        multiples: ANTHROPIC,
        warmth: CacheWarmth::Warm,
        further_requests: 10.0,
        growth: 0.0,
        summary_cost: 0.0,
        rework: 0.0,
    }
}

fn break_even(numbers: EconomyNumbers) -> f64 {
    (numbers.weigh().break_even * 10.0).round() / 10.0
}

/// Ten to one and five to one; with a summarizer that reads the history and writes the view at five
/// times the price; and with the prices of models that read at a twentieth.
#[test]
fn the_break_even_is_that_of_the_arithmetic() {
    let (ten, five) = (numbers(100_000, 10_000), numbers(50_000, 10_000));
    assert_eq!([ten, five].map(break_even), [1.3, 2.9]);
    let by_model = |n: EconomyNumbers| EconomyNumbers {
        summary_cost: n.history.0 as f64 * n.multiples.read + n.view.0 as f64 * 5.0,
        ..n
    };
    assert_eq!([ten, five].map(by_model).map(break_even), [7.9, 16.6]);
    let cheap = |n: EconomyNumbers| EconomyNumbers {
        multiples: CacheMultiples {
            read: 0.05,
            ..ANTHROPIC
        },
        ..n
    };
    assert_eq!([ten, five].map(cheap).map(break_even), [2.7, 6.0]);
    assert_eq!(
        [ten, five].map(cheap).map(by_model).map(break_even),
        [14.9, 32.3]
    );
}

#[test]
fn a_cold_cache_pays_at_once_and_so_does_one_that_is_not_used() {
    for warmth in [CacheWarmth::Cold, CacheWarmth::Unused] {
        let one = EconomyNumbers {
            warmth,
            further_requests: 1.0,
            ..numbers(100_000, 50_000)
        };
        assert_eq!(one.weigh().break_even, 0.0);
        assert!(one.weigh().pays());
    }
    let warm = EconomyNumbers {
        further_requests: 1.0,
        ..numbers(100_000, 50_000)
    };
    assert!(!warm.weigh().pays());
}

/// What three hundred requests cost that grow by `growth` tokens each, where a compaction is made whenever it pays, and
/// how many are made. `known` is the growth that is reckoned with.
fn play_session(view: u64, growth: u64, known: f64, limit: usize) -> (f64, usize) {
    let CacheMultiples { read, write } = ANTHROPIC;
    let (mut history, mut cost, mut compactions) = (view, 0.0, 0);
    for request in 0..300 {
        history += growth;
        let now = EconomyNumbers {
            further_requests: f64::from(300 - request),
            growth: known,
            ..numbers(history, view)
        };
        if compactions < limit && now.weigh().pays() {
            (history, compactions) = (view, compactions + 1);
            cost += view as f64 * write;
        } else {
            cost += (history - growth) as f64 * read + growth as f64 * write;
        }
    }
    (cost, compactions)
}

/// A compaction that pays by itself is made again and again while a session grows; together they must pay too.
#[test]
fn a_growing_session_costs_less_with_it_than_without_and_than_with_every_one_that_pays_by_itself() {
    for (view, growth) in [
        (10_000, 500),
        (25_000, 600),
        (25_000, 5_000),
        (80_000, 2_000),
    ] {
        let (with, compactions) = play_session(view, growth, growth as f64, usize::MAX);
        let (without, _) = play_session(view, growth, growth as f64, 0);
        let (at_once, more) = play_session(view, growth, 0.0, usize::MAX);
        assert!(
            compactions > 0 && compactions < more,
            "{compactions} and {more}"
        );
        assert!(with < without, "{view} {growth}: {with} and {without}");
        assert!(with < at_once, "{view} {growth}: {with} and {at_once}");
    }
}

#[test]
fn a_view_that_is_no_smaller_never_pays() {
    for view in [50_000, 60_000] {
        let balance = EconomyNumbers {
            further_requests: 1e6,
            ..numbers(50_000, view)
        };
        assert_eq!(balance.weigh().break_even, f64::INFINITY);
        assert!(!balance.weigh().pays());
    }
}

#[test]
fn prices_are_multiples_of_the_input_price() {
    let of = |model: &str| {
        find_model(model)?
            .price
            .and_then(|p| CacheMultiples::from_price(&p))
    };
    let round = |m: CacheMultiples| [m.read, m.write].map(|x| (x * 100.0).round() / 100.0);
    assert_eq!(of("claude-sonnet-4-5").map(round), Some([0.1, 1.25]));
    assert_eq!(of("gpt-5").map(round), Some([0.1, 1.0]));
    assert_eq!(of("gpt-4o").map(round), Some([0.5, 1.0]));
}

#[test]
fn a_decision_says_its_numbers_and_acts_only_when_it_may() {
    let decision = decide(Tokens(100_000), Tokens(200_000), &Policy::default());
    let weighed = Some(numbers(100_000, 10_000));
    let off = decide_economy(decision.clone(), EconomyMode::Off, weighed);
    assert_eq!(off, decision);
    let told = "a compaction pays: n* = 1.3, n = 10 expected requests (warm cache, read 0.10, write 1.25, \
                100000 → 10000 tokens)";
    let observed = decide_economy(decision.clone(), EconomyMode::Observe, weighed);
    let expected = TriggerDecision {
        reason: format!("50.0 % of the window; {told}"),
        ..decision
    };
    assert_eq!(observed, expected);
    let acted = decide_economy(decision.clone(), EconomyMode::Act, weighed);
    let expected = TriggerDecision {
        verdict: Verdict::CompactNow,
        reason: told.to_owned(),
        cause: Some(CompactionCause::Economy),
        ..decision
    };
    assert_eq!(acted, expected);
}

#[test]
fn what_a_threshold_decided_stays_decided() {
    let full = decide(Tokens(190_000), Tokens(200_000), &Policy::default());
    let never = Some(EconomyNumbers {
        further_requests: 0.0,
        ..numbers(190_000, 180_000)
    });
    let decision = decide_economy(full.clone(), EconomyMode::Act, never);
    assert_eq!(
        (decision.verdict, decision.cause),
        (full.verdict, full.cause)
    );
}

#[test]
fn a_session_is_expected_to_go_on_for_as_long_as_it_has() {
    let policy = EconomyPolicy::default();
    assert_eq!(policy.further_requests(40, None), 40.0);
    assert_eq!(policy.further_requests(40, Some(12.5)), 12.5);
    let known = EconomyPolicy {
        expected_requests: Some(7),
        ..policy
    };
    assert_eq!(known.further_requests(40, Some(12.5)), 7.0);
}

fn any_numbers() -> impl Strategy<Value = EconomyNumbers> {
    let warmth = prop_oneof![
        Just(CacheWarmth::Warm),
        Just(CacheWarmth::Cold),
        Just(CacheWarmth::Unused)
    ];
    let tokens = (0u64..2_000_000, 0u64..2_000_000);
    let prices = (0.0..1.0f64, 1.0..2.0f64);
    let costs = (0.0..1e6f64, 0.0..1e6f64, 0.0..1e5f64);
    (tokens, prices, warmth, 0u32..500, costs).prop_map(|(tokens, prices, warmth, n, costs)| {
        EconomyNumbers {
            history: Tokens(tokens.0),
            view: Tokens(tokens.1),
            multiples: CacheMultiples {
                read: prices.0,
                write: prices.1,
            },
            warmth,
            further_requests: f64::from(n),
            growth: costs.2,
            summary_cost: costs.0,
            rework: costs.1,
        }
    })
}

/// What `count` requests cost from now on, request by request, in tokens at the input price.
fn request_costs(n: &EconomyNumbers, is_compacted: bool) -> f64 {
    let CacheMultiples { read, write } = match n.warmth {
        CacheWarmth::Unused => CacheMultiples::UNCACHED,
        _ => n.multiples,
    };
    let (history, view) = (n.history.0 as f64, n.view.0 as f64);
    let first = match (is_compacted, n.warmth) {
        (true, _) => view * write + n.summary_cost + n.rework,
        (false, CacheWarmth::Warm) => history * read,
        (false, _) => history * write,
    };
    let later = if is_compacted { view } else { history } * read;
    first + later * (n.further_requests - 1.0)
}

proptest! {
    /// It never compacts when that costs more than going on does, and always when it costs less.
    #[test]
    fn a_compaction_pays_when_all_requests_together_cost_less(n in any_numbers()) {
        prop_assume!(n.further_requests >= 1.0);
        let saved = request_costs(&n, false) - request_costs(&n, true);
        let scale = request_costs(&n, false) + request_costs(&n, true) + 1.0;
        prop_assume!(saved.abs() > scale * 1e-9);
        let is_smaller = n.view < n.history;
        let steady = EconomyNumbers { growth: 0.0, ..n };
        prop_assert_eq!(steady.weigh().pays(), is_smaller && saved > 0.0, "saved {}", saved);
        prop_assert!(!n.weigh().pays() || saved > 0.0);
        prop_assert!((n.weigh().saving - saved).abs() <= scale * 1e-6);
    }

    /// More requests, a smaller view or a colder cache never make it pay less.
    #[test]
    fn what_pays_pays_with_more_to_gain(n in any_numbers(), more in 1u32..100, less in 0u64..1_000_000) {
        if n.weigh().pays() {
            let longer = EconomyNumbers { further_requests: n.further_requests + f64::from(more), ..n };
            let smaller = EconomyNumbers { view: Tokens(n.view.0.saturating_sub(less)), ..n };
            prop_assert!(longer.weigh().pays());
            prop_assert!(smaller.weigh().pays());
            if n.warmth == CacheWarmth::Warm {
                let cold = EconomyNumbers { warmth: CacheWarmth::Cold, ..n };
                prop_assert!(cold.weigh().pays());
            }
        }
    }

    /// Every decision states n*, whatever the numbers.
    #[test]
    fn a_balance_states_its_numbers(n in any_numbers()) {
        let told = n.weigh().to_string();
        prop_assert!(told.contains("n* = "), "{}", told);
    }
}
