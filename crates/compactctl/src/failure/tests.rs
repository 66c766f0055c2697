use super::*;

#[test]
fn a_command_that_was_left_out_names_its_feature_and_how_to_get_it() {
    let failure = Failure::without_feature("eval");
    assert_eq!(
        failure.to_json(),
        json!({ "error": {
            "kind": "usage",
            "exit_code": 2,
            "message": "this build has no `eval`: it was made without the cargo feature `eval`",
            "help": "build one that has everything with `--features full`, as in `cargo run --release --features full`",
        } })
    );
}
