use super::*;

fn map(text: &str) -> TestMap {
    toml::from_str(text).unwrap()
}

#[test]
fn numbers_and_ranges_are_read() {
    let ids = |text| {
        let ids = parse_ids(text).unwrap_or_default();
        ids.iter().map(RequirementId::to_string).collect::<Vec<_>>()
    };
    assert_eq!(ids("C-7"), ["C-7"]);
    assert_eq!(ids("S1-2..4"), ["S1-2", "S1-3", "S1-4"]);
    for wrong in ["S1", "S1-x", "S1-4..2", ""] {
        assert_eq!(ids(wrong), [""; 0], "{wrong}");
    }
}

#[test]
fn only_tests_count() {
    let text = "fn plain() {}\n\n#[test]\n/// Words.\nfn held() {}\n\nfn between() {}\n\
                #[tokio::test(flavor = \"multi_thread\")]\nasync fn awaited() {}\n\
                def test_python(place):\n    def inner():\nasync def test_later():\n";
    let expected = ["awaited", "held", "test_later", "test_python"];
    assert_eq!(test_names(text), BTreeSet::from(expected));
}

#[test]
fn a_test_that_is_not_there_is_a_mistake() {
    let this = "xtask/src/requirements/tests.rs";
    let root = shell::repo_root();
    let there = map(&format!("['{this}']\nonly_tests_count = ['S3-1']"));
    assert!(check_tests_exist(&root, &there).is_ok());
    let gone = map(&format!("['{this}']\nmap = ['S3-1']"));
    assert_eq!(
        check_tests_exist(&root, &gone).unwrap_err().to_string(),
        format!("docs/requirements.toml: there is no test `map` in {this}")
    );
    let moved = map("['xtask/src/nowhere.rs']\nheld = ['S3-1']");
    let error = check_tests_exist(&root, &moved).unwrap_err().to_string();
    assert!(error.contains("names xtask/src/nowhere.rs"), "{error}");
}

#[test]
fn an_unknown_number_and_an_open_one_are_mistakes() {
    let list = parse_list("@host theirs\n= S3\n## S3: usage\nS3-1..2 counted\nS3-3 @host a file\n");
    let check = |numbers: &str| {
        let tests = tests_by_id(&map(&format!("[f]\nt = [{numbers}]"))).unwrap();
        let checked = check_numbers(list.as_ref().unwrap(), &tests);
        checked.map_err(|e| e.to_string())
    };
    assert_eq!(check("'S3-1..2'"), Ok(()));
    assert_eq!(
        check("'S3-1'"),
        Err("S3-2 has neither a test nor a reason in docs/requirements.txt".into())
    );
    assert_eq!(
        check("'S3-1..2', 'S3-9'"),
        Err("docs/requirements.toml: S3-9 of `t` in f is not in docs/requirements.txt".into())
    );
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    for text in ["S3-x words\n", "S3-1 @nobody words\n", "S3-1 a\nS3-1 b\n"] {
        assert!(
            parse_list(text)
                .unwrap_err()
                .to_string()
                .contains("requirements.txt:"),
            "{text}"
        );
    }
}
