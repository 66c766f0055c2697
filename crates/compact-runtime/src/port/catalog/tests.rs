use super::*;

#[tokio::test]
async fn memory_conforms() {
    conformance::suite(&MemoryCatalog::default()).await;
}

#[tokio::test(start_paused = true)]
async fn leases_in_memory_run_out() {
    conformance::lease_suite(&MemoryCatalog::default(), tokio::time::sleep).await;
}

#[test]
fn a_record_survives_json() {
    let record = conformance::sample_record("s", "r");
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<CompactionRecord>(&json).unwrap(),
        record
    );
}

#[tokio::test]
async fn a_copy_has_everything_and_copying_again_copies_nothing() {
    let (from, to) = (MemoryCatalog::default(), MemoryCatalog::default());
    let attempt = Attempt {
        at: "2026-01-02T03:04:05Z".to_owned(),
        turn: "t".to_owned(),
        outcome: "failed".to_owned(),
        tokens: 9,
    };
    for session in conformance::ODD_SESSION_IDS {
        for receipt in ["one", "two"] {
            let record = conformance::sample_record(session, receipt);
            from.save_record(&record).await.unwrap();
        }
        let event = serde_json::json!({"event": "compact.completed"});
        from.save_event(session, &event).await.unwrap();
        from.save_attempt(session, &attempt).await.unwrap();
    }
    let copied = copy_catalog(&from, &to, &SessionRenames::default())
        .await
        .unwrap();
    assert_eq!((copied.sessions, copied.records, copied.events), (8, 16, 8));
    assert_eq!(to.sessions().await.unwrap(), from.sessions().await.unwrap());
    for session in conformance::ODD_SESSION_IDS {
        assert_eq!(
            to.session_records(session).await.unwrap(),
            from.session_records(session).await.unwrap()
        );
        assert_eq!(
            to.events(session).await.unwrap(),
            from.events(session).await.unwrap()
        );
        assert_eq!(
            to.last_attempt(session).await.unwrap(),
            Some(attempt.clone())
        );
    }
    let again = copy_catalog(&from, &to, &SessionRenames::default())
        .await
        .unwrap();
    assert_eq!((again.records, again.events), (0, 0));
}

#[tokio::test]
async fn a_session_comes_under_the_name_that_it_is_given_or_not_at_all() {
    let (from, to) = (MemoryCatalog::default(), MemoryCatalog::default());
    let record = conformance::sample_record;
    for (catalog, session, receipt) in [
        (&from, "main", "1111111111"),
        (&from, "left", "2222222222"),
        (&to, "main", "4444444444"),
    ] {
        let record = record(session, receipt);
        catalog.save_record(&record).await.unwrap();
    }
    let mut renames = SessionRenames::default();
    renames.rename("main", "main@11111111".to_owned());
    renames.leave_out("left");
    for records in [1, 0] {
        let copied = copy_catalog(&from, &to, &renames).await.unwrap();
        assert_eq!((copied.sessions, copied.records), (2, records));
    }
    let records = async |session: &str| to.session_records(session).await.unwrap();
    assert_eq!(records("main").await, [record("main", "4444444444")]);
    let renamed = record("main", "1111111111").in_session("main@11111111");
    assert_eq!(records("main@11111111").await, [renamed]);
    assert_eq!(records("left").await, []);
}

/// Somebody may write anything into a record of theirs; what a receipt of ours names does not change by it.
#[tokio::test]
async fn a_receipt_that_is_known_keeps_its_record_in_whichever_session_it_comes() {
    let (from, to) = (MemoryCatalog::default(), MemoryCatalog::default());
    let mine = conformance::sample_record("mine", "1111111111");
    to.save_record(&mine).await.unwrap();
    let forged = CompactionRecord {
        input_pack: Some(PackId([9; 32])),
        created_at: "1999-01-01T00:00:00Z".to_owned(),
        ..mine.clone().in_session("theirs")
    };
    from.save_record(&forged).await.unwrap();
    let renames = SessionRenames::default();
    copy_catalog(&from, &to, &renames).await.unwrap();
    let theirs = to.session_records("theirs").await.unwrap();
    assert_eq!(theirs, [mine.clone().in_session("theirs")]);
    assert_eq!(to.find_record("1111111111").await.unwrap(), Some(mine));
}

#[tokio::test]
async fn a_name_is_a_receipt_or_a_session_whole_or_by_its_beginning() {
    let catalog = MemoryCatalog::default();
    let mut records = Vec::new();
    for (session, receipt) in [
        ("0123456789-one", "aaaaaaaa11"),
        ("0123456789-two", "bbbbbbbb22"),
        // The beginning of a receipt, and whole.
        ("aaaaaaaa", "cccccccc33"),
        ("cccccccc33", "dddddddd44"),
    ] {
        let record = conformance::sample_record(session, receipt);
        catalog.save_record(&record).await.unwrap();
        records.push(record);
    }
    let [one, two, whole, last] = records.try_into().unwrap();
    for (name, expected) in [
        ("aaaaaaaa11", Some(NamedRecord::Receipt(one.clone()))),
        ("aaaaaaaa1", Some(NamedRecord::Receipt(one.clone()))),
        ("cccccccc3", Some(NamedRecord::Receipt(whole))),
        ("0123456789-one", Some(NamedRecord::Session(one.clone()))),
        ("0123456789-o", Some(NamedRecord::Session(one))),
        ("0123456789-t", Some(NamedRecord::Session(two))),
        ("dddddddd", Some(NamedRecord::Receipt(last))),
        ("0123456", None),
        ("nobody-at-all", None),
    ] {
        let found = find_named_record(&catalog, name).await.unwrap();
        assert_eq!(found, expected, "{name}");
    }
    let ambiguous = find_named_record(&catalog, "01234567").await;
    assert!(matches!(ambiguous, Err(CatalogError::Ambiguous { prefix }) if prefix == "01234567"));
}

/// Whoever calls a session like a receipt gets neither the receipt's readers nor its pointers.
#[tokio::test]
async fn a_session_that_is_called_like_the_beginning_of_a_receipt_does_not_stand_for_it() {
    let catalog = MemoryCatalog::default();
    let mine = conformance::sample_record("mine", "aaaaaaaaaaaa1111");
    let other = conformance::sample_record("aaaaaaaaaaaa", "bbbbbbbbbbbb2222");
    for record in [&mine, &other] {
        catalog.save_record(record).await.unwrap();
    }
    let error = find_named_record(&catalog, "aaaaaaaaaaaa")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`aaaaaaaaaaaa` is a session, and the receipt aaaaaaaaaaaa1111 begins so; write \
         receipt:aaaaaaaaaaaa1111 for the receipt, session:aaaaaaaaaaaa for the session"
    );
    let whole = conformance::sample_record("aaaaaaaaaaaa1111", "cccccccccccc3333");
    catalog.save_record(&whole).await.unwrap();
    let error = find_named_record(&catalog, "aaaaaaaaaaaa1111")
        .await
        .unwrap_err();
    assert_eq!(
        error.hint().unwrap(),
        "write receipt:aaaaaaaaaaaa1111 for the receipt, session:aaaaaaaaaaaa1111 for the session"
    );
    let pointed = async |name| find_pointed_record(&catalog, name).await.unwrap();
    assert_eq!(pointed("aaaaaaaaaaaa").await, Some(mine.clone()));
    assert_eq!(pointed("aaaaaaaaaaaa1111").await, Some(mine.clone()));
    assert_eq!(pointed("bbbbbbbbbbbb").await, Some(other));
    assert_eq!(pointed("mine").await, Some(mine));
    assert_eq!(pointed("nobody-at-all").await, None);
}

/// Where sessions are called like a receipt's id, whole and by its beginning, what the errors say works.
#[tokio::test]
async fn a_name_that_says_what_it_names_always_works() {
    let catalog = MemoryCatalog::default();
    let mine = conformance::sample_record("mine", "aaaaaaaaaaaa1111");
    let beginning = conformance::sample_record("aaaaaaaa", "bbbbbbbbbbbb2222");
    let whole = conformance::sample_record("aaaaaaaaaaaa1111", "cccccccccccc3333");
    let signed = conformance::sample_record("session:other", "dddddddddddd4444");
    for record in [&mine, &beginning, &whole, &signed] {
        catalog.save_record(record).await.unwrap();
    }
    for (name, expected) in [
        (
            "receipt:aaaaaaaaaaaa1111",
            NamedRecord::Receipt(mine.clone()),
        ),
        ("receipt:aaaaaaaa", NamedRecord::Receipt(mine.clone())),
        ("history:aaaaaaaaaaaa1111", NamedRecord::Receipt(mine)),
        ("session:aaaaaaaa", NamedRecord::Session(beginning)),
        ("session:aaaaaaaaaaaa1111", NamedRecord::Session(whole)),
        ("session:other", NamedRecord::Session(signed.clone())),
        (
            "session:session:other",
            NamedRecord::Session(signed.clone()),
        ),
    ] {
        let found = find_named_record(&catalog, name).await.unwrap();
        assert_eq!(found.as_ref(), Some(&expected), "{name}");
        let pointed = find_pointed_record(&catalog, name).await.unwrap();
        assert_eq!(pointed, Some(expected.into_record()), "{name}");
    }
    assert_eq!(
        find_named_record(&catalog, "session:aaaa").await.unwrap(),
        None
    );

    // Nor may anybody call a session so to be taken for a receipt.
    let id = "ffffffffffffffff6666";
    for record in [
        conformance::sample_record("hers", id),
        conformance::sample_record(&format!("receipt:{id}"), "9999999999999999"),
    ] {
        catalog.save_record(&record).await.unwrap();
    }
    let error = find_named_record(&catalog, &format!("receipt:{id}"))
        .await
        .unwrap_err();
    assert_eq!(
        error.hint().unwrap(),
        format!(
            "write receipt:ffffffffffffffff for the receipt, session:receipt:{id} for the session"
        )
    );

    let other = conformance::sample_record("other", "eeeeeeeeeeee5555");
    catalog.save_record(&other).await.unwrap();
    let error = find_named_record(&catalog, "session:other")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`session:other` is a session, and `other` is another; write receipt:dddddddddddd4444 or \
         history:dddddddddddd4444 for the first, receipt:eeeeeeeeeeee5555 or history:eeeeeeeeeeee5555 for the other"
    );
}
