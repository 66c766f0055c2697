use super::*;

fn verdict(tokens: u64, window: u64, policy: &Policy) -> Verdict {
    decide(Tokens(tokens), Tokens(window), policy).verdict
}

#[test]
fn the_ratio_is_of_the_window_and_inclusive() {
    let policy = Policy::default();
    assert_eq!(verdict(108_799, 128_000, &policy), Verdict::Warn);
    assert_eq!(verdict(108_800, 128_000, &policy), Verdict::CompactNow);
    assert_eq!(verdict(128_001, 128_000, &policy), Verdict::Exceeded);
    assert_eq!(verdict(50_000, 128_000, &policy), Verdict::Stay);
}

#[test]
fn a_share_can_be_strict() {
    let policy = Policy {
        trigger_pct: 0.8,
        trigger_inclusive: false,
        ..Policy::default()
    };
    assert_eq!(verdict(80_000, 100_000, &policy), Verdict::Warn);
    assert_eq!(verdict(80_001, 100_000, &policy), Verdict::CompactNow);
}

#[test]
fn tokens_left_trigger_by_themselves() {
    let policy = Policy {
        trigger_tokens_left: Some(20_000),
        ..Policy::default()
    };
    assert_eq!(verdict(79_999, 100_000, &policy), Verdict::Stay);
    assert_eq!(verdict(80_000, 100_000, &policy), Verdict::CompactNow);
}

#[test]
fn a_soft_threshold_comes_first() {
    let policy = Policy {
        soft_pct: Some(0.6),
        ..Policy::default()
    };
    assert_eq!(verdict(54_000, 100_000, &policy), Verdict::Stay);
    assert_eq!(verdict(56_000, 100_000, &policy), Verdict::Warn);
    assert_eq!(verdict(60_000, 100_000, &policy), Verdict::CompactSoon);
    assert_eq!(verdict(85_000, 100_000, &policy), Verdict::CompactNow);
}

#[test]
fn a_person_may_ask_at_any_pressure() {
    let decision = decide_manual(Tokens(10), Tokens(100), "user-command");
    assert_eq!(decision.verdict, Verdict::CompactNow);
    assert_eq!(decision.reason, "asked for: user-command");
}

#[test]
fn the_base_may_be_the_budget() {
    let policy = Policy {
        trigger_base: TriggerBase::Budget,
        hard_cap_buffer: 1500,
        ..Policy::default()
    };
    // 107,525 = 0.85 × (128,000 − 1,500): where the trigger moves when the buffer counts.
    assert_eq!(verdict(107_524, 128_000, &policy), Verdict::Warn);
    assert_eq!(verdict(107_525, 128_000, &policy), Verdict::CompactNow);
    assert_eq!(trigger_point(Tokens(128_000), &policy), Tokens(107_525));
}

#[test]
fn a_ratio_above_one_never_triggers() {
    let policy = Policy {
        trigger_pct: 1.1,
        ..Policy::default()
    };
    assert_eq!(verdict(500_000, 128_000, &policy), Verdict::Stay);
}

#[test]
fn no_window_is_no_pressure() {
    assert_eq!(window_share(Tokens(5), Tokens(0)), 0.0);
}
