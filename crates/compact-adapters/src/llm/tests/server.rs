//! A server on loopback that follows a script, faults included, and keeps every byte it is sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Answers with these words, in the shape of the path that was asked.
    Says(String),
    /// Answers with this status, these header lines and this body.
    Answers(u16, &'static str, String),
    /// Never answers.
    Hangs,
    /// Reads the request and closes the connection.
    Dies,
    /// Promises an answer, sends half of it, and closes the connection.
    DiesMidway,
}

/// One request as it came over the wire.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) at: Instant,
    pub(super) head: String,
    pub(super) body: String,
}

impl Heard {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(super) struct Server {
    pub(super) url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Follows the script, its last act for ever.
    pub(super) async fn start(script: impl IntoIterator<Item = Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<Act>>()));
        let (theirs, ours) = (heard.clone(), script);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, theirs.clone(), ours.clone()));
            }
        });
        Server { url, heard, task }
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    heard: Arc<Mutex<Vec<Heard>>>,
    script: Arc<Mutex<VecDeque<Act>>>,
) {
    while let Some(request) = read(&mut stream).await {
        let act = {
            let mut script = script.lock().unwrap();
            match script.len() {
                0 | 1 => script.front().cloned().unwrap_or(Act::Dies),
                _ => script.pop_front().unwrap(),
            }
        };
        heard.lock().unwrap().push(request.clone());
        let reply = match act {
            Act::Says(text) => reply(200, "", &shaped(&request, &text).to_string()),
            Act::Answers(status, headers, body) => reply(status, headers, &body),
            Act::Hangs => {
                tokio::time::sleep(Duration::from_secs(600)).await;
                return;
            }
            Act::Dies => return,
            Act::DiesMidway => {
                let whole = reply(200, "", &shaped(&request, "half of an answer").to_string());
                whole.chars().take(whole.len() / 2).collect()
            }
        };
        if stream.write_all(reply.as_bytes()).await.is_err() || !reply.ends_with('\n') {
            return;
        }
    }
}

fn reply(status: u16, headers: &str, body: &str) -> String {
    let body = format!("{body}\n");
    let kind = match headers.contains("content-type") {
        true => "",
        false => "content-type: application/json\r\n",
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status} As Scripted\r\n{kind}{headers}content-length: {length}\r\n\r\n{body}"
    )
}

/// Words as the wire of a path carries them.
fn shaped(request: &Heard, text: &str) -> Value {
    let path = request.head.split(' ').nth(1).unwrap_or_default();
    let compaction = request.body.contains("\"compaction\":{");
    match path.trim_start_matches("/v1/") {
        "chat/completions" => json!({"model": "m", "choices": [{"finish_reason": "stop",
            "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}}),
        "responses" => json!({"model": "m", "status": "completed",
            "output": [{"type": "reasoning", "summary": []},
                {"type": "message", "content": [{"type": "output_text", "text": text}]}],
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}}}),
        "responses/compact" => json!({"object": "response.compaction",
            "output": [{"type": "compaction", "encrypted_content": "sealed"}]}),
        "messages" if compaction => json!({"model": "m", "stop_reason": "end_turn",
            "content": [{"type": "compaction", "content": text}],
            "usage": {"input_tokens": 6, "cache_read_input_tokens": 4}}),
        "messages" => json!({"model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 6, "cache_read_input_tokens": 4}}),
        "embeddings" => {
            let input: Value = serde_json::from_str(&request.body).unwrap();
            let texts = input["input"].as_array().unwrap();
            let vector = |(i, t): (usize, &Value)| json!({"index": i, "embedding": [t.as_str().unwrap().len(), 1.0]});
            // In the wrong order, as a server may.
            let data: Vec<Value> = texts.iter().enumerate().map(vector).rev().collect();
            json!({"data": data})
        }
        other => panic!("nothing is at {other}"),
    }
}

async fn read(stream: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = |line: &str| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse::<usize>()
                    .ok()
            };
            let length = head.lines().find_map(length).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                return Some(Heard {
                    at: Instant::now(),
                    head,
                    body,
                });
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}
