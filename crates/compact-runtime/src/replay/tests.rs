use super::*;

#[test]
fn cached_tokens_are_read_and_new_ones_written() {
    let call = PlayedCall {
        entries: 0,
        pressure: 0.0,
        sent: Tokens(3_000_000),
        cached: Tokens(1_000_000),
        answered: Tokens(500_000),
        receipt: None,
        failure: None,
        reason: String::new(),
    };
    let price = |cache_read, cache_write| ModelPrice {
        input: 2.0,
        output: 10.0,
        cache_read,
        cache_write,
    };
    assert_eq!(
        call_cost(&call, &price(Some(0.5), Some(2.5))),
        0.5 + 5.0 + 5.0
    );
    assert_eq!(call_cost(&call, &price(None, None)), 2.0 + 4.0 + 5.0);
}
