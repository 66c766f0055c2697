//! Answers that are written on while they pass: a model's summary with what it lost, and a model's answer with what it
//! looked up on the way.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use compact::format::validate::Provider;
use compact::hook::{self, CharCount};
use compact::message::Ledger;
use http::header::CONTENT_LENGTH;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Gateway;
use crate::augment::{self, TextEnd};
use crate::event_stream::{EventSplitter, open_body, read_event, write_event};
use crate::header;
use crate::lookup::{self, AskedLookups, CallStream, MOST_ROUNDS, NOT_RUN};
use crate::patience;
use crate::received::{AnswerEnd, AnswerWatch, ReceivedAnswer};
use crate::usage::is_event_stream;

/// What is added to a summary at most, in characters.
const MOST_ADDED: CharCount = CharCount(6_000);

/// The client of a stream left, or the upstream broke off.
struct StreamCut;

/// What a model's summary is held against.
#[derive(Clone)]
pub(crate) struct SummaryProof {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) receipt: String,
    pub(crate) session: String,
}

impl SummaryProof {
    /// Returns what a text leaves out, as it is added to it.
    async fn find_addition(&self, gateway: &Arc<Gateway>, text: String) -> Option<String> {
        let proof = self.clone();
        let found = gateway.run_engine(async move |_| {
            let archive = format!(
                "receipt {0} (`compactctl restore {0}`; [#N] is {0}#N)",
                proof.receipt
            );
            hook::find_loss(&proof.ledger, &text, &archive, MOST_ADDED).text
        });
        Some(format!("\n\n{}\n", found.await??))
    }
}

/// Passes a model's summary on, and adds what it lost before it ends.
pub(crate) async fn relay_summary(
    gateway: Arc<Gateway>,
    provider: Provider,
    mut answer: ReceivedAnswer,
    proof: SummaryProof,
    mut watch: AnswerWatch,
) -> Response {
    let mut response = open_response(&answer, &proof.session, Some(&proof.receipt));
    if !is_event_stream(answer.headers()) {
        let bytes = answer.read_whole(&mut watch).await;
        *response.body_mut() = match serde_json::from_slice::<Value>(&bytes) {
            Ok(mut document) => {
                let text = augment::document_text(provider, &document);
                if let Some(added) = proof.find_addition(&gateway, text).await {
                    augment::append_to_document(provider, &mut document, &added);
                }
                Body::from(document.to_string())
            }
            Err(_) => Body::from(bytes),
        };
        return response;
    }
    let (sender, body) = open_body();
    *response.body_mut() = Body::new(body);
    tokio::spawn(async move {
        let mut end = TextEnd::new(provider);
        let mut splitter = EventSplitter::default();
        while let Ok(Some(chunk)) = next_chunk(&sender, &mut answer).await {
            watch.read_chunk(&chunk);
            splitter.add_chunk(&chunk);
            while let Some(event) = splitter.take_event() {
                let written = write_summary_event(&gateway, &proof, &mut end, event).await;
                if send_all(&sender, written).await.is_err() {
                    return;
                }
            }
        }
        let _ = send_all(&sender, vec![splitter.take_rest()]).await;
        watch.end(AnswerEnd::Complete);
    });
    response
}

async fn write_summary_event(
    gateway: &Arc<Gateway>,
    proof: &SummaryProof,
    end: &mut TextEnd,
    event: Bytes,
) -> Vec<Bytes> {
    let Some(value) = read_event(&event) else {
        return vec![event];
    };
    if let Some(text) = end.find_end(&value).map(str::to_owned) {
        end.add(proof.find_addition(gateway, text).await);
    }
    match end.write_end(&value) {
        Some(written) => written.iter().map(write_event).collect(),
        None => vec![event],
    }
}

/// Sends a body once more where the first went.
pub(crate) type SendAgain = Box<
    dyn Fn(Bytes) -> Pin<Box<dyn Future<Output = Option<ReceivedAnswer>> + Send>> + Send + Sync,
>;

/// A request whose model may look things up.
pub(crate) struct LookupTurn {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) provider: Provider,
    pub(crate) session: String,
    pub(crate) receipt: Option<String>,
    /// The request as it was sent.
    pub(crate) body: Bytes,
    pub(crate) send_again: SendAgain,
}

impl LookupTurn {
    /// Passes an answer on without the calls that are ours, and what the model says once they are answered.
    pub(crate) async fn relay_answer(
        mut self,
        mut answer: ReceivedAnswer,
        mut watch: AnswerWatch,
    ) -> Response {
        let mut response = open_response(&answer, &self.session, self.receipt.as_deref());
        let calls = lookup::open_calls(self.provider);
        let (true, Some(mut calls)) = (is_event_stream(answer.headers()), calls) else {
            let bytes = answer.read_whole(&mut watch).await;
            *response.body_mut() = Body::from(self.answer_whole(bytes).await);
            return response;
        };
        let (sender, body) = open_body();
        *response.body_mut() = Body::new(body);
        tokio::spawn(async move {
            for round in 0..MOST_ROUNDS {
                let watched = (round == 0).then_some(&mut watch);
                if pass_round(&sender, &mut answer, &mut *calls, watched)
                    .await
                    .is_err()
                {
                    return;
                }
                let Some(asked) = calls.take_lookups() else {
                    return;
                };
                match self.ask_again(&asked).await {
                    Some(next) if is_event_stream(next.headers()) => answer = next,
                    _ => break,
                }
            }
            let _ = send_all(&sender, vec![failed_event(self.provider)]).await;
        });
        response
    }

    async fn answer_whole(&mut self, first: Bytes) -> Bytes {
        let mut bytes = first;
        let mut before: Vec<AskedLookups> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let Ok(mut document) = serde_json::from_slice::<Value>(&bytes) else {
                return bytes;
            };
            let Some(asked) = lookup::find_lookups(self.provider, &document) else {
                for asked in before.iter().rev() {
                    lookup::prepend_spoken(self.provider, &mut document, asked);
                }
                return match before.is_empty() {
                    true => bytes,
                    false => document.to_string().into(),
                };
            };
            let Some(mut next) = self.ask_again(&asked).await else {
                return bytes;
            };
            before.push(asked);
            let mut unwatched = AnswerWatch::unwatched();
            bytes = next.read_whole(&mut unwatched).await;
        }
        bytes
    }

    /// Answers the calls of an answer and asks the model again; `None` where that fails.
    async fn ask_again(&mut self, asked: &AskedLookups) -> Option<ReceivedAnswer> {
        let mut answers = Vec::new();
        for call in &asked.calls {
            answers.push(match call.is_ours() {
                true => {
                    let (call, session) = (call.clone(), self.session.clone());
                    let looked_up = self.gateway.run_engine(async move |gateway| {
                        let compact = gateway.sessions.compact();
                        let answered = lookup::answer_call(compact, &session, &call);
                        patience::wait_for(gateway.patience(), answered).await
                    });
                    looked_up.await??
                }
                false => NOT_RUN.trim().to_owned(),
            });
        }
        self.gateway.metrics.count_lookups(asked.calls.len());
        let messages = lookup::answered_messages(self.provider, asked, &answers);
        self.body = lookup::append_messages(&self.body, &messages)?;
        let answer = (self.send_again)(self.body.clone()).await?;
        (200..300).contains(&answer.status()).then_some(answer)
    }
}

/// Passes one answer of the model on, but for calls.
async fn pass_round(
    sender: &mpsc::Sender<Result<Bytes, hyper::Error>>,
    answer: &mut ReceivedAnswer,
    calls: &mut dyn CallStream,
    mut watch: Option<&mut AnswerWatch>,
) -> Result<(), StreamCut> {
    let mut splitter = EventSplitter::default();
    while let Some(chunk) = next_chunk(sender, answer).await? {
        if let Some(watch) = &mut watch {
            watch.read_chunk(&chunk);
        }
        splitter.add_chunk(&chunk);
        while let Some(event) = splitter.take_event() {
            send_all(sender, calls.pass_event(event)).await?;
        }
    }
    if let Some(watch) = watch {
        watch.end(AnswerEnd::Complete);
    }
    send_all(sender, vec![splitter.take_rest()]).await
}

/// Returns the next chunk of an answer; a broken connection is handed on.
async fn next_chunk(
    sender: &mpsc::Sender<Result<Bytes, hyper::Error>>,
    answer: &mut ReceivedAnswer,
) -> Result<Option<Bytes>, StreamCut> {
    match answer.next_chunk().await {
        Ok(chunk) => Ok(chunk),
        Err(error) => {
            let _ = sender.send(Err(error)).await;
            Err(StreamCut)
        }
    }
}

async fn send_all(
    sender: &mpsc::Sender<Result<Bytes, hyper::Error>>,
    pieces: Vec<Bytes>,
) -> Result<(), StreamCut> {
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        sender.send(Ok(piece)).await.map_err(|_| StreamCut)?;
    }
    Ok(())
}

/// What a stream ends with when the model could not be asked again.
fn failed_event(provider: Provider) -> Bytes {
    let error = json!({"type": "api_error", "message": "the model could not be asked again after a look-up"});
    match provider {
        Provider::Anthropic => write_event(&json!({"type": "error", "error": error})),
        _ => write_event(&json!({"error": error})),
    }
}

fn open_response(answer: &ReceivedAnswer, session: &str, receipt: Option<&str>) -> Response {
    let mut response = answer.open_response();
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(header::SESSION, header::own_value(session));
    if let Some(receipt) = receipt {
        headers.insert(header::RECEIPT, header::own_value(receipt));
    }
    response
}
