//! What is said when a bucket is not as configured: by a server that says no in the words of S3.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A server that answers reads with 404 and whatever else with `status` and `code`.
async fn server(status: &'static str, code: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 65_536];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let reads = request[..read].starts_with(b"GET /b/");
                let (status, code) = match reads && code != "NoSuchBucket" {
                    true => ("404 Not Found", "NoSuchKey"),
                    false => (status, code),
                };
                let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

/// A bucket there; whoever asks has keys that are not to be seen.
fn archive(endpoint: String) -> ObjectArchive {
    let bucket = Bucket {
        name: "b".to_owned(),
        endpoint: Some(endpoint),
        region: Some("us-east-1".to_owned()),
        ..Bucket::default()
    };
    let builder = object_store::aws::AmazonS3Builder::new()
        .with_access_key_id("key")
        .with_secret_access_key("very-secret");
    ObjectArchive {
        store: s3::open_with(builder, &bucket).unwrap(),
        ..ObjectArchive::in_bucket(&bucket).unwrap()
    }
}

async fn refusal(status: &'static str, code: &'static str) -> (String, String) {
    let place = format!("http://{}", server(status, code).await);
    let put = archive(place.clone()).put(Bytes::from("words"), None).await;
    let error = put.unwrap_err();
    assert!(matches!(error, ArchiveError::Refused { .. }), "{error:?}");
    let said = error.to_string();
    assert!(!said.contains("very-secret"), "{said}");
    (said, place)
}

#[tokio::test]
async fn a_bucket_that_may_only_be_read_is_told_with_what_is_missing() {
    let (said, place) = refusal("403 Forbidden", "AccessDenied").await;
    assert_eq!(
        said,
        format!(
            "cannot write to the archive: the bucket b at {place} denies access \
             (AccessDenied); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may \
             read, write and list there"
        )
    );
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_told() {
    let (said, place) = refusal("404 Not Found", "NoSuchBucket").await;
    assert!(
        said.ends_with(&format!(
            "there is no bucket b at {place}; create it, or name another in storage.s3.bucket"
        )),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let place = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let error = archive(place.clone()).list().await.unwrap_err();
    assert!(
        matches!(error, ArchiveError::Unreachable { .. }),
        "{error:?}"
    );
    let said = error.to_string();
    assert!(
        said.contains(&format!("the bucket b at {place} does not answer")),
        "{said}"
    );
    assert!(said.contains("storage.s3.endpoint"), "{said}");
}
