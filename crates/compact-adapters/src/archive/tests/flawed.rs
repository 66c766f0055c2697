//! A real server whose conditional writes do not work: `COMPACT_TEST_S3_FLAWED` names it, after how
//! they do not (`ignored http://…`). `cargo xtask test` starts one, `cargo xtask storage` more of them.
//! Without it, what needs it passes without having looked.

use futures::future::join_all;

use super::*;

fn flawed(name: &str) -> Option<(Exclusion, Bucket)> {
    let told = std::env::var("COMPACT_TEST_S3_FLAWED").ok()?;
    let (flaw, endpoint) = told.split_once(' ').unwrap();
    let flaw = [Exclusion::Ignored, Exclusion::Races]
        .into_iter()
        .find(|known| known.as_str() == flaw);
    let bucket = Bucket {
        name: "compact-test".to_owned(),
        prefix: format!("{name}-{}", std::process::id()),
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        ..Bucket::default()
    };
    Some((flaw.unwrap(), bucket))
}

#[tokio::test]
async fn a_real_server_is_found_out_and_conforms() {
    let Some((flaw, bucket)) = flawed("conforms") else {
        return;
    };
    let archive = ObjectArchive::in_bucket(&bucket).unwrap();
    assert_eq!(archive.exclusion().await.unwrap(), flaw);
    conformance::suite(&archive).await;
    let next = ObjectArchive::in_bucket(&bucket).unwrap();
    assert_eq!(
        next.exclusion().await.unwrap(),
        flaw,
        "as it was left there"
    );
}

/// Writers that do not know of each other, as in different processes.
#[tokio::test(flavor = "multi_thread")]
async fn of_writers_at_once_everybody_has_the_same_whole_pack() {
    let Some((_, bucket)) = flawed("writers") else {
        return;
    };
    let plain = Bytes::from("said by all at once ".repeat(4_000));
    let writers = (0..8).map(|_| {
        let (bucket, plain) = (bucket.clone(), plain.clone());
        tokio::spawn(async move {
            let archive = ObjectArchive::in_bucket(&bucket).unwrap();
            // A server may show half of what another writes; who is told so writes again.
            for _ in 0..4 {
                if let Ok(info) = archive.put(plain.clone(), None).await {
                    return info.id;
                }
            }
            archive.put(plain, None).await.unwrap().id
        })
    });
    let ids = join_all(writers).await.into_iter().map(Result::unwrap);
    let ids: Vec<PackId> = ids.collect();
    let archive = ObjectArchive::in_bucket(&bucket).unwrap();
    assert_eq!(archive.list().await.unwrap(), ids[..1]);
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(archive.get(&ids[0]).await.unwrap(), plain);
}
