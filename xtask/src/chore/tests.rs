//! Chores end in any order, all of them run, and the line says which are left.

use super::*;

#[test]
fn every_chore_runs_and_failures_are_named_in_the_end() {
    let ran = Mutex::new(Vec::new());
    let chore = |name: &'static str, result: fn() -> Result<()>| {
        let ran = &ran;
        Chore::new(name, move |_: &Console| {
            ran.lock().unwrap().push(name);
            result()
        })
    };
    let failing = || bail!("no");
    let chores = vec![
        chore("self-test a", || Ok(())),
        chore("self-test b", failing),
        chore("self-test c", || Ok(())),
        chore("self-test d", failing),
    ];
    let error = run_chores(1, chores).unwrap_err();
    assert_eq!(error.to_string(), "failed: self-test b, self-test d");
    let order = ["self-test a", "self-test b", "self-test c", "self-test d"];
    assert_eq!(*ran.lock().unwrap(), order);
}

#[test]
fn what_a_chore_prints_is_in_its_log() {
    let chores = vec![Chore::new("self-test: prints!", |console: &Console| {
        console.run("echo", &["from a program"], &[])?;
        console.print_line("from us")
    })];
    let outcomes = run_and_report(2, chores).unwrap();
    let log = fs::read_to_string(&outcomes[0].log).unwrap();
    assert_eq!(log, "$ echo from a program\nfrom a program\nfrom us\n");
    assert!(outcomes[0].log.ends_with("chores/self-test--prints-.log"));
}

#[test]
fn the_line_of_progress_names_what_is_running() {
    let mut board = ProgressBoard::new(5);
    board.running = vec!["Rust".to_owned(), "agents".to_owned()];
    assert_eq!(
        board.progress_line(Duration::from_secs(192)),
        "[3:12] 0 of 5 done; running: Rust, agents"
    );
}

#[test]
fn the_end_of_a_text_is_its_last_lines() {
    assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
    assert_eq!(last_lines("a\n", 2), "a");
    assert_eq!(last_lines("", 2), "");
}
