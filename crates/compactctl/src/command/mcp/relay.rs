//! What stands between stdio and the protocol: lines that are no JSON are answered here, all others pass.
//!
//! The protocol's own reader passes over a line that it cannot read, and whoever sent it waits for an answer that
//! never comes. JSON-RPC has one for it, without an id.

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{
    self, AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// How many bytes wait between stdio and the protocol.
const BUFFER: usize = 64 * 1024;

/// The two ends that the protocol reads from and writes to, and what ends when its last answer is out.
pub(super) struct RelayedStdio {
    pub(super) requests: DuplexStream,
    pub(super) answers: DuplexStream,
    pub(super) writer: JoinHandle<io::Result<()>>,
}

/// Takes stdin and stdout over.
pub(super) fn relay_stdio() -> RelayedStdio {
    let (requests, to_server) = io::duplex(BUFFER);
    let (from_server, answers) = io::duplex(BUFFER);
    let out = Arc::new(Mutex::new(io::stdout()));
    tokio::spawn(pass_requests(
        BufReader::new(io::stdin()),
        to_server,
        Arc::clone(&out),
    ));
    RelayedStdio {
        requests,
        answers,
        writer: tokio::spawn(pass_answers(BufReader::new(from_server), out)),
    }
}

/// Passes every line on that the protocol can read, and answers the others.
async fn pass_requests(
    mut lines: impl AsyncBufRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    out: Arc<Mutex<impl AsyncWrite + Unpin>>,
) -> io::Result<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await? > 0 {
        match answer_unreadable(&line) {
            Some(answer) => write_line(&out, answer.to_string().as_bytes()).await?,
            None => server.write_all(&line).await?,
        }
        line.clear();
    }
    server.shutdown().await
}

async fn pass_answers(
    mut lines: impl AsyncBufRead + Unpin,
    out: Arc<Mutex<impl AsyncWrite + Unpin>>,
) -> io::Result<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await? > 0 {
        write_line(&out, line.trim_ascii_end()).await?;
        line.clear();
    }
    Ok(())
}

async fn write_line(out: &Mutex<impl AsyncWrite + Unpin>, line: &[u8]) -> io::Result<()> {
    let mut out = out.lock().await;
    out.write_all(line).await?;
    out.write_all(b"\n").await?;
    out.flush().await
}

/// Returns the answer to a line that is no message at all.
fn answer_unreadable(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    let (code, message) = if line.is_empty() {
        return None;
    } else if serde_json::from_slice::<IgnoredAny>(line).is_err() {
        (
            -32_700,
            "Parse error: the line is no JSON; send one message in each line",
        )
    } else if !line.starts_with(b"{") && !line.starts_with(b"[") {
        (
            -32_600,
            "Invalid Request: the line is no object of JSON-RPC",
        )
    } else {
        return None;
    };
    Some(json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_message_is_answered_and_the_rest_passes() {
        let sent =
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\nhello\n42\n{\"a\"\n{\"b\":1}\n";
        let (mut server, to_server) = io::duplex(BUFFER);
        let out = Arc::new(Mutex::new(Vec::new()));
        pass_requests(sent.as_bytes(), to_server, Arc::clone(&out))
            .await
            .unwrap();
        let mut passed = String::new();
        io::AsyncReadExt::read_to_string(&mut server, &mut passed)
            .await
            .unwrap();
        assert_eq!(
            passed,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n{\"b\":1}\n"
        );
        let answers = String::from_utf8(out.lock().await.clone()).unwrap();
        let answers = answers.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            (answer["id"].clone(), answer["error"]["code"].clone())
        });
        let codes = [-32_700, -32_600, -32_700];
        assert_eq!(
            answers.collect::<Vec<_>>(),
            codes.map(|code| (Value::Null, json!(code)))
        );
    }
}
