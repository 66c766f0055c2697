use super::*;

fn run(ordinal: u32, text: &str, outcome: ToolRunOutcome) -> ToolRun {
    ToolRun {
        ordinal,
        text: text.into(),
        path: None,
        answer: None,
        end: None,
        outcome,
    }
}

#[test]
fn a_failure_is_closed_by_any_later_pass_of_the_same_check() {
    let rows = [
        (
            "Bash: cargo test -p auth login",
            "Bash: cargo test -p auth login",
            true,
        ),
        (
            "Bash: cargo test -p auth login",
            "Bash: cd app && cargo test -p auth 2>&1 | tail -5",
            true,
        ),
        ("Bash: cargo test login", "Bash: cargo test", true),
        ("Bash: cargo test", "Bash: cargo test login", false),
        ("Bash: cargo test login", "Bash: cargo test logout", false),
        ("Bash: cargo test", "Bash: cargo build", false),
        ("Bash: npm run lint", "Bash: npm run lint -- --quiet", true),
        (
            "Bash: npx vitest run a.test.ts",
            "Bash: vitest run a.test.ts",
            true,
        ),
        (
            "Bash: python -m pytest -x tests/a.py",
            "Bash: PYTHONPATH=. pytest tests/a.py -v",
            true,
        ),
        ("Bash: make check", "Read: make check", false),
        (
            "Bash: cargo test -p a",
            "Bash: cargo test --workspace",
            true,
        ),
        ("Bash: go test ./store", "Bash: go test ./...", true),
        (
            "set_advance: contract_id: NL-88213 amount: 80",
            "set_advance: contract_id: NL-88213 amount: 84",
            true,
        ),
        (
            "set_advance: contract_id: NL-88213 amount: 80",
            "set_advance: contract_id: NL-11111 amount: 84",
            false,
        ),
        (
            "create_credit_note: invoice: INV-11 amount: 314",
            "set_advance: invoice: INV-11 amount: 84",
            false,
        ),
    ];
    for (failed, passed, closes) in rows {
        let facts = Facts {
            runs: vec![
                run(1, failed, ToolRunOutcome::Failed("no".into())),
                run(2, passed, ToolRunOutcome::Ok),
                run(3, failed, ToolRunOutcome::Pending),
            ],
            ..Facts::default()
        };
        let found: Vec<_> = facts
            .failed_runs()
            .iter()
            .map(|f| f.closed_by.map(|r| r.ordinal))
            .collect();
        assert_eq!(found, [closes.then_some(2)], "{failed} / {passed}");
    }
}

#[test]
fn an_earlier_pass_closes_nothing() {
    let facts = Facts {
        runs: vec![
            run(1, "Bash: make", ToolRunOutcome::Ok),
            run(2, "Bash: make", ToolRunOutcome::Failed("no".into())),
        ],
        ..Facts::default()
    };
    let failed = facts.failed_runs();
    assert_eq!(
        failed
            .iter()
            .map(|f| (f.run.ordinal, f.why, f.closed_by.is_some()))
            .collect::<Vec<_>>(),
        [(2, "no", false)]
    );
}

#[test]
fn the_newest_run_of_each_check_is_its_state() {
    let ended = |ordinal, text, end: &str| ToolRun {
        end: Some(end.into()),
        ..run(ordinal, text, ToolRunOutcome::Ok)
    };
    let facts = Facts {
        runs: vec![
            run(
                1,
                "Bash: cargo test",
                ToolRunOutcome::Failed("test a ... FAILED".into()),
            ),
            ended(2, "Bash: cargo clippy", "2 warnings"),
            ended(3, "Bash: rg failed src", "src/a.rs: // it failed"),
            ended(4, "Bash: cargo test -q", "12 passed"),
            ended(5, "Bash: cargo build", "Finished in 3 s"),
            ended(6, "write_stdin: session_id: 7", "ok"),
            run(
                7,
                "Bash: sqlx migrate run",
                ToolRunOutcome::Failed("migration 42 failed".into()),
            ),
            ended(8, "Bash: sqlx migrate run", "Applied 42b"),
        ],
        ..Facts::default()
    };
    let newest: Vec<u32> = facts
        .newest_checks()
        .iter()
        .map(|run| run.ordinal)
        .collect();
    assert_eq!(newest, [8, 4, 2]);
}

#[test]
fn what_was_executed_is_told_and_what_only_looked_is_not() {
    let ok = |ordinal, text| run(ordinal, text, ToolRunOutcome::Ok);
    let facts = Facts {
        runs: vec![
            ok(1, "Bash: python3 migrate.py orders | tail -3"),
            ok(2, "Bash: cat notes.md && rg orders src"),
            ok(3, "Bash: git status"),
            ok(4, "Bash: cd app && git commit -m done"),
            ok(5, "Grep: pattern: open|close path: src"),
            ok(6, "cancel_order: order_id: W12"),
            ok(7, "Bash: python3 migrate.py orders | tail -3"),
            run(
                8,
                "Bash: make deploy",
                ToolRunOutcome::Failed("exit 2".into()),
            ),
        ],
        ..Facts::default()
    };
    let ordinals = |runs: Vec<&ToolRun>| runs.iter().map(|run| run.ordinal).collect::<Vec<u32>>();
    assert_eq!(ordinals(facts.executed_commands()), [7, 4], "each once");
    let looks = facts.runs.iter().filter(|run| run.only_looks());
    assert_eq!(ordinals(looks.collect()), [2, 3, 5]);
}

#[test]
fn what_is_searched_for_is_no_command() {
    let run = |command: &str| run(0, &format!("exec_command: {command}"), ToolRunOutcome::Ok);
    assert!(run(r#"rg -n "cancel|rm -rf /|Deadline" internal"#).only_looks());
    assert!(run("grep -E 'a;b|c&d' x | head -3").only_looks());
    assert!(!run(r#"rg -n "a|b" . ; cargo test"#).only_looks());
    assert!(!run(r#"echo "a|b" && rm x"#).only_looks());
}
