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
