//! What stands between stdio and the protocol: lines that it cannot read are answered here, all others pass.
//!
//! The protocol's own reader passes over such a line, or answers it without its id, and whoever sent it waits for an
//! answer that never comes. JSON-RPC has one for each: with the id, or null where none can be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcMessage, NumberOrString};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
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
            Some(answer) => write_line(&out, answer.as_bytes()).await?,
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

/// Why a line cannot be worked on: the code of JSON-RPC, and words for whoever sent it.
type LineFault = (ErrorCode, String);

/// The requests that are answered here; others are unknown whatever their parameters.
const METHODS: [&str; 4] = ["initialize", "ping", "tools/list", "tools/call"];

/// Returns the answer to a line that the protocol's reader cannot read.
fn answer_unreadable(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(line).ok();
    let Some(text) = text.filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok()) else {
        let why = "Parse error: the line is no JSON; send one message in each line";
        return Some(error_answer(
            "null",
            (ErrorCode::PARSE_ERROR, why.to_owned()),
        ));
    };
    let Ok(message) = serde_json::from_str::<MessageMembers<'_>>(text) else {
        let why = "the line is no object of JSON-RPC; send one message in each line";
        return Some(error_answer("null", invalid_request(why)));
    };
    let fault = message.find_fault(text)?;
    Some(error_answer(message.answerable_id(), fault))
}

fn error_answer(id: &str, (code, message): LineFault) -> String {
    let error = json!({"code": code.0, "message": message});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}")
}

fn invalid_request(why: &str) -> LineFault {
    (
        ErrorCode::INVALID_REQUEST,
        format!("Invalid Request: {why}"),
    )
}

/// The members of a message as they are written, however deep they go.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct MessageMembers<'a>(#[serde(borrow)] BTreeMap<String, &'a RawValue>);

impl MessageMembers<'_> {
    fn json(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|raw| raw.get())
    }

    fn string(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.json(key)?).ok()
    }

    /// The id as it was written, if an answer can bear it.
    fn answerable_id(&self) -> &str {
        let is_plain = |id: &&str| id.starts_with(|c: char| matches!(c, '"' | '-' | '0'..='9'));
        self.json("id").filter(is_plain).unwrap_or("null")
    }

    /// Returns why the protocol's reader cannot read the message, if so.
    fn find_fault(&self, text: &str) -> Option<LineFault> {
        let is_id = |id: &str| serde_json::from_str::<NumberOrString>(id).is_ok();
        if self.string("jsonrpc").as_deref() != Some("2.0") {
            return Some(invalid_request("`jsonrpc` must be \"2.0\""));
        }
        if self.json("id").is_some_and(|id| !is_id(id)) {
            return Some(invalid_request("`id` must be a string or an integer"));
        }
        let is_answer = self.json("result").or(self.json("error")).is_some();
        let method = self.string("method");
        if method.is_none() && (!is_answer || self.json("method").is_some()) {
            return Some(invalid_request("`method` must be a string"));
        }
        if self
            .json("params")
            .is_some_and(|params| !params.starts_with('{'))
        {
            return Some(invalid_params("`params` must be an object"));
        }
        match serde_json::from_str::<ClientJsonRpcMessage>(text) {
            Ok(JsonRpcMessage::Request(request)) => {
                // What does not fit a method that is known is read as one that nobody knows.
                let is_other = matches!(request.request, ClientRequest::CustomRequest(_));
                let known = METHODS
                    .iter()
                    .find(|known| Some(**known) == method.as_deref());
                known.filter(|_| is_other).map(|known| {
                    invalid_params(&format!("what {known} needs is missing or of a wrong type"))
                })
            }
            Ok(_) => None,
            Err(_) => Some(invalid_request(
                &match serde_json::from_str::<Value>(text) {
                    Err(error) => error.to_string(),
                    Ok(_) => "it is no message of MCP".to_owned(),
                },
            )),
        }
    }
}

fn invalid_params(why: &str) -> LineFault {
    (ErrorCode::INVALID_PARAMS, format!("Invalid params: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    #[tokio::test]
    async fn what_is_no_message_is_answered_and_the_rest_passes() {
        let sent = format!("{PING}\n\nhello\n42\n{{\"a\"\n{PING}\n");
        let (mut server, to_server) = io::duplex(BUFFER);
        let out = Arc::new(Mutex::new(Vec::new()));
        pass_requests(sent.as_bytes(), to_server, Arc::clone(&out))
            .await
            .unwrap();
        let mut passed = String::new();
        io::AsyncReadExt::read_to_string(&mut server, &mut passed)
            .await
            .unwrap();
        assert_eq!(passed, format!("{PING}\n\n{PING}\n"));
        let answers = String::from_utf8(out.lock().await.clone()).unwrap();
        let codes: Vec<_> = answers.lines().map(code_and_id).collect();
        let expected = [-32_700, -32_600, -32_700].map(|code| (code, Value::Null));
        assert_eq!(codes, expected);
    }

    fn code_and_id(answer: &str) -> (i64, Value) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer["error"]["message"].is_string());
        (
            answer["error"]["code"].as_i64().unwrap(),
            answer.get("id").unwrap().clone(),
        )
    }

    /// A request with these members beside its version.
    fn request(members: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0",{members}}}"#)
    }

    #[test]
    fn whatever_the_protocol_cannot_read_is_answered_with_its_id() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let deep = format!(
            r#""id":5,"method":"tools/call","params":{{"name":"recall","arguments":{{"query":{deep}}}}}"#
        );
        let call = |params: &str| {
            request(&format!(
                r#""id":5,"method":"tools/call","params":{params}"#
            ))
        };
        let rows = [
            ("[]".to_owned(), -32_600, Value::Null),
            (format!("[{PING},{PING}]"), -32_600, Value::Null),
            ("{}".to_owned(), -32_600, Value::Null),
            (r#"{"id":5,"method":"ping"}"#.to_owned(), -32_600, json!(5)),
            (request(r#""id":5"#), -32_600, json!(5)),
            (request(r#""id":5,"method":5"#), -32_600, json!(5)),
            (request(r#""method":5"#), -32_600, Value::Null),
            (
                request(r#""id":null,"method":"ping""#),
                -32_600,
                Value::Null,
            ),
            (request(r#""id":[1],"method":"ping""#), -32_600, Value::Null),
            (request(r#""id":1.5,"method":"ping""#), -32_600, json!(1.5)),
            (
                request(r#""id":5,"method":"ping","method":"ping""#),
                -32_600,
                json!(5),
            ),
            (request(&deep), -32_600, json!(5)),
            (
                request(r#""id":5,"method":"tools/call""#),
                -32_602,
                json!(5),
            ),
            (call("[]"), -32_602, json!(5)),
            (call(r#"{"name":5}"#), -32_602, json!(5)),
            (
                call(r#"{"name":"recall","arguments":[]}"#),
                -32_602,
                json!(5),
            ),
            (
                request(r#""id":"a","method":"initialize""#),
                -32_602,
                json!("a"),
            ),
            ("\u{feff}garbage".to_owned(), -32_700, Value::Null),
        ];
        for (line, code, id) in rows {
            let answer = answer_unreadable(line.as_bytes());
            let answer = answer.unwrap_or_else(|| panic!("no answer to {line}"));
            assert_eq!(code_and_id(&answer), (code, id), "{line}");
        }
        assert!(answer_unreadable(b"\"\xff\"").unwrap().contains("-32700"));
    }

    #[test]
    fn what_the_protocol_answers_itself_passes() {
        for line in [
            PING,
            r#"{"jsonrpc":"2.0","id":5,"method":"nope"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"nope","params":{"a":[1]}}"#,
            r#"{"jsonrpc":"2.0","method":"nope"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"zzz"}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"a","_meta":{}}}"#,
        ] {
            assert_eq!(answer_unreadable(line.as_bytes()), None, "{line}");
        }
    }
}
