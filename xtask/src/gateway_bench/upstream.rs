//! The model behind everything that is measured: it reads a request, answers with a stream whose events say when they were
//! written, and looks afterwards whether a session's request begins with the bytes of the one before.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::history::{SESSION_MARK, TURN_MARK};
use super::message::HttpConnection;

/// How many events an answer has, and the pause between two.
const EVENTS: usize = 6;
const PAUSE: Duration = Duration::from_millis(2);

/// A server that answers like a model.
pub(super) struct MockUpstream {
    pub(super) port: u16,
    state: Arc<UpstreamState>,
}

struct UpstreamState {
    began: Instant,
    seen: Mutex<BTreeMap<String, SeenSession>>,
}

/// What was received of a session.
#[derive(Default)]
struct SeenSession {
    last: Vec<u8>,
    /// How much of it stands before the newest turn.
    settled: usize,
    requests: u32,
    kept: u32,
}

impl MockUpstream {
    /// Listens on a free port; `began` is what the events' times count from.
    pub(super) fn start(began: Instant) -> io::Result<MockUpstream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(UpstreamState {
            began,
            seen: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                // A connection that breaks is its client's to notice.
                thread::spawn(move || state.serve(stream));
            }
        });
        Ok(MockUpstream { port, state })
    }

    /// Returns how many requests of sessions whose names begin so went on from the one before byte for byte, and of how
    /// many.
    pub(super) fn kept_prefixes(&self, session: &str) -> (u32, u32) {
        let seen = self.state.seen.lock();
        let seen = seen.unwrap_or_else(PoisonError::into_inner);
        let named = seen.iter().filter(|(name, _)| name.starts_with(session));
        named.fold((0, 0), |(kept, all), (_, session)| {
            (kept + session.kept, all + session.requests)
        })
    }
}

impl UpstreamState {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut connection = HttpConnection::new(stream)?;
        while let Some(head) = connection.read_head()? {
            if head.field("expect").is_some() {
                connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            let mut body = Vec::new();
            connection.read_body(&head, &mut |piece| body.extend_from_slice(piece))?;
            self.answer(&mut connection)?;
            self.note_body(body);
        }
        Ok(())
    }

    fn answer(&self, connection: &mut HttpConnection) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let first = format!("{head}{}", self.event());
        connection.send(first.as_bytes())?;
        for _ in 1..EVENTS {
            thread::sleep(PAUSE);
            connection.send(self.event().as_bytes())?;
        }
        let usage = r#"{"prompt_tokens":9,"completion_tokens":6,"total_tokens":15}"#;
        let last = chunk(&format!(
            r#"{{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        ));
        let end = format!("{last}{}0\r\n\r\n", chunk("[DONE]"));
        connection.send(end.as_bytes())
    }

    fn event(&self) -> String {
        let now = self.began.elapsed().as_nanos();
        chunk(&format!(
            r#"{{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-5","choices":[{{"index":0,"delta":{{"role":"assistant","content":"@{now}@"}},"finish_reason":null}}]}}"#
        ))
    }

    fn note_body(&self, body: Vec<u8>) {
        let text = String::from_utf8_lossy(&body);
        let Some((_, rest)) = text.split_once(SESSION_MARK) else {
            return;
        };
        let name = rest.split(' ').next().unwrap_or_default().to_owned();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let session = seen.entry(name).or_default();
        // Whatever order a gateway writes members in, what stands before the newest turn must stay.
        let goes_on = session.last.get(..session.settled) == body.get(..session.settled);
        if !session.last.is_empty() {
            session.requests += 1;
            session.kept += u32::from(goes_on);
        }
        session.settled = text.rfind(TURN_MARK).unwrap_or_default();
        session.last = body;
    }
}

fn chunk(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}
