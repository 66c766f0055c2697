//! The load: requests at fixed times, whether or not earlier ones were answered, each timed from when it was due.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::history::GrowingHistory;
use super::message::HttpConnection;

/// Where requests go, and what a client sends there beside the usual.
#[derive(Clone, Debug)]
pub(super) struct LoadTarget {
    pub(super) port: u16,
    pub(super) path: &'static str,
    /// Whole lines.
    pub(super) headers: String,
}

/// How often something is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadRate {
    pub(super) requests: usize,
    pub(super) per_second: f64,
}

/// What was measured of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadSample {
    /// From when it was due to the first byte of its answer.
    pub(super) first_byte: Duration,
    /// From when it was due to the end.
    pub(super) whole: Duration,
    /// From when an event was written to when it was read.
    pub(super) events: Vec<Duration>,
}

/// A client with one connection.
pub(super) struct LoadClient {
    target: LoadTarget,
    connection: HttpConnection,
    began: Instant,
}

impl LoadClient {
    /// Connects; `began` is what the events' times count from.
    pub(super) fn open(target: &LoadTarget, began: Instant) -> io::Result<LoadClient> {
        Ok(LoadClient {
            connection: HttpConnection::open(target.port)?,
            target: target.clone(),
            began,
        })
    }

    /// Sends a request that was due at some time, and reads its answer.
    pub(super) fn ask(&mut self, body: &[u8], due: Instant) -> Result<LoadSample> {
        let target = &self.target;
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\n{}Content-Length: {}\r\n\r\n",
            target.path,
            target.port,
            target.headers,
            body.len()
        );
        self.connection.send(request.as_bytes())?;
        self.connection.send(body)?;
        let head = self.connection.read_head()?.context("no answer came")?;
        let mut sample = LoadSample::default();
        let mut answer = String::new();
        let began = self.began;
        self.connection.read_body(&head, &mut |piece| {
            let now = Instant::now();
            if answer.is_empty() {
                sample.first_byte = now.duration_since(due);
            }
            let text = String::from_utf8_lossy(piece);
            sample.events.extend(
                written_times(&text).map(|at| now.duration_since(began).saturating_sub(at)),
            );
            answer.push_str(&text);
        })?;
        sample.whole = due.elapsed();
        if !head.first_line.contains(" 200") {
            let words: String = answer.chars().take(300).collect();
            bail!("port {}: {} {words}", target.port, head.first_line);
        }
        if head.field("connection") == Some("close") {
            self.connection = HttpConnection::open(target.port)?;
        }
        Ok(sample)
    }
}

/// Returns when the events of a text were written.
fn written_times(text: &str) -> impl Iterator<Item = Duration> {
    let between = text.split('@').skip(1).step_by(2);
    between.filter_map(|nanos| nanos.parse().ok().map(Duration::from_nanos))
}

/// Asks at a rate, with one connection for each history.
pub(super) fn run_load(
    target: &LoadTarget,
    histories: &mut [GrowingHistory],
    rate: LoadRate,
    began: Instant,
) -> Result<Vec<LoadSample>> {
    let clients = histories.len();
    let start = Instant::now() + Duration::from_millis(20);
    let due_at = |request: usize| start + Duration::from_secs_f64(request as f64 / rate.per_second);
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for (at, history) in histories.iter_mut().enumerate() {
            workers.push(scope.spawn(move || -> Result<Vec<LoadSample>> {
                let mut client = LoadClient::open(target, began)?;
                let mut samples = Vec::new();
                for request in (at..rate.requests).step_by(clients) {
                    let body = history.next_body();
                    let due = due_at(request);
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    samples.push(client.ask(&body, due)?);
                }
                Ok(samples)
            }));
        }
        let mut samples = Vec::new();
        for worker in workers {
            let done = worker.join();
            samples.extend(done.ok().context("a client of the load panicked")??);
        }
        Ok(samples)
    })
}
