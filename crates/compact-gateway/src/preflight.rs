//! From a request's body to what is sent: who it belongs to, what it is for, and the engine's answer.
//!
//! This computes, for milliseconds, so it runs on threads that may, and only as many at a time as there are
//! processors. Whatever fails here but a budget that holds nothing, the original goes out.

use std::sync::Arc;
use std::thread;

use axum::response::Response;
use bytes::Bytes;
use compact::config::CompactionAnswer;
use compact::format::overflow::Overflow;
use compact::format::validate::{self, Provider, Strictness};
use compact::format::{self, ParsedTranscript, TranscriptScope};
use compact::manager::SessionState;
use compact::message::EntryHash;
use compact::store::with_waiting;
use compact::token::Tokens;
use compact::{Error, ErrorKind, Prompt, Session};
use http::HeaderMap;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::Gateway;
use crate::access::Tenant;
use crate::body;
use crate::class::{self, BodyFacts, CompactionKind, RequestClass};
use crate::compaction::{self, SummaryAnswer};
use crate::identity::SessionKey;
use crate::live::{LARGE_BODY, LiveSession};
use crate::lookup;
use crate::nudge::Nudge;
use crate::patience::{self, compute_in_place};
use crate::refusal::{AnswerForm, TooLong};
use crate::relay::SummaryProof;
use crate::route::Endpoint;
use crate::upstream::Upstream;
use crate::weight;

/// A request to a model, as its client sent it.
#[derive(Clone)]
pub(crate) struct ModelRequest {
    pub(crate) tenant: Tenant,
    pub(crate) provider: Provider,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    /// The body, unpacked once the request is planned.
    pub(crate) plain: Bytes,
    /// Whether the path itself asks for a summary.
    pub(crate) endpoint: Endpoint,
}

/// What is to be done with a request to a model.
pub(crate) struct RequestPlan {
    pub(crate) class: RequestClass,
    pub(crate) form: AnswerForm,
    pub(crate) action: PlannedAction,
}

/// A request with its plan.
pub(crate) struct PlannedRequest {
    pub(crate) request: ModelRequest,
    /// Its body where it had items of ours, which only we can read: they are written out as messages.
    pub(crate) written: Option<Bytes>,
    pub(crate) plan: RequestPlan,
}

impl PlannedRequest {
    /// A request that goes out as it came because something of ours failed before it was read.
    fn passed_after(request: ModelRequest, reason: &'static str) -> PlannedRequest {
        PlannedRequest {
            request,
            written: None,
            plan: RequestPlan {
                class: RequestClass::Main,
                form: AnswerForm::Whole,
                action: PlannedAction::PassAfterFailure(OwnFailure::new(reason)),
            },
        }
    }
}

/// What is to be done.
pub(crate) enum PlannedAction {
    /// It goes out as it came, and nobody looks at its answer.
    Pass,
    /// It goes out as it came because something of ours failed.
    PassAfterFailure(OwnFailure),
    /// It goes out, as it came or as a view.
    Send(SessionTurn),
    /// Nothing that could be sent fits.
    Refuse(TooLong),
    /// It asks for a summary, and this is it.
    Answer(Response),
    /// It asks for a summary: the model writes it, we add what it lost. This is ours, should the model fail.
    Augment(SummaryProof, Response),
}

/// A failure of ours, for which no request is held up.
#[derive(Default)]
pub(crate) struct OwnFailure {
    /// What failed, in a word.
    pub(crate) reason: &'static str,
    /// The same in whole words, where there is more to say.
    pub(crate) detail: String,
    /// The session, as far as it is known.
    pub(crate) session: Option<String>,
    pub(crate) model: Option<String>,
    /// The session, begun anew, for a smaller prompt should the upstream refuse this one as too long.
    pub(crate) retry: Option<SessionTurn>,
}

impl OwnFailure {
    fn new(reason: &'static str) -> OwnFailure {
        OwnFailure {
            reason,
            ..OwnFailure::default()
        }
    }

    fn about(self, session: Option<String>, model: Option<String>) -> OwnFailure {
        OwnFailure {
            session,
            model,
            ..self
        }
    }
}

impl From<EngineFailure> for OwnFailure {
    fn from(failure: EngineFailure) -> OwnFailure {
        OwnFailure {
            detail: describe_causes(&failure),
            ..OwnFailure::new(failure.reason())
        }
    }
}

/// The engine did not do what a request needs.
#[derive(Debug, thiserror::Error)]
enum EngineFailure {
    /// It says why.
    #[error(transparent)]
    Error(#[from] Error),
    /// What it asked did not answer.
    #[error("the store did not answer within gateway.store_timeout_seconds")]
    Silence,
}

impl EngineFailure {
    fn reason(&self) -> &'static str {
        match self {
            EngineFailure::Error(error) => failure_name(error),
            EngineFailure::Silence => "store_timeout",
        }
    }
}

/// Returns an error with what caused it.
fn describe_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let words: Vec<String> = causes.map(ToString::to_string).collect();
    words.join(": ")
}

/// A request that is part of a session.
pub(crate) struct SessionTurn {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) model: Option<String>,
    /// The body of the view; none where the history goes out as it came.
    pub(crate) view: Option<Bytes>,
    /// The receipt of the compaction that was made for it.
    pub(crate) receipt: Option<String>,
    /// Whether the prompt fills so much of its window that an upstream may refuse it.
    pub(crate) is_large: bool,
    /// Whether the model was offered to look things up.
    pub(crate) offers_lookups: bool,
    /// What its client is told of its size, where that is not what its provider reports.
    pub(crate) nudge: Option<Nudge>,
}

/// A request that was read.
struct ReadRequest {
    parsed: ParsedTranscript,
    /// The body, of which messages that are known may be left out.
    rest: Bytes,
    /// The names of its entries, where they are known.
    hashes: Option<Vec<EntryHash>>,
}

impl ReadRequest {
    fn from_whole(request: &ModelRequest) -> Option<ReadRequest> {
        let (rest, format) = (request.plain.clone(), request.provider.format());
        let parsed = format::parse(rest.clone(), Some(format), TranscriptScope::Live);
        Some(ReadRequest {
            parsed: parsed.ok()?,
            rest,
            hashes: None,
        })
    }
}

/// How many requests compute at a time.
pub(crate) struct EnginePlaces(Arc<Semaphore>);

impl EnginePlaces {
    pub(crate) fn new() -> EnginePlaces {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        EnginePlaces(Arc::new(Semaphore::new(cores)))
    }
}

impl Gateway {
    /// Runs work of the engine on a thread that may compute; `None` if it panicked.
    pub(crate) async fn run_engine<T, F>(self: &Arc<Self>, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&Gateway) -> T + Send + 'static,
    {
        let place = Arc::clone(&self.places.0).acquire_owned().await.ok();
        let gateway = Arc::clone(self);
        let handle = Handle::current();
        let places = Arc::clone(&self.places.0);
        let worked = tokio::task::spawn_blocking(move || {
            let work = compute_in_place(places, place, work(&gateway));
            with_waiting(|| handle.block_on(work))
        });
        worked.await.ok()
    }

    /// Waits for the engine, unless what it asks is silent for too long.
    async fn wait_for_engine<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, EngineFailure> {
        let worked = patience::wait_for(self.patience(), work).await;
        Ok(worked.ok_or(EngineFailure::Silence)??)
    }

    /// Finds out what to do with a request.
    pub(crate) async fn plan_request(self: &Arc<Self>, request: ModelRequest) -> PlannedRequest {
        let as_it_came = request.clone();
        let planned = self.run_engine(async move |gateway| gateway.unpack_and_plan(request).await);
        let planned = planned.await;
        planned.unwrap_or_else(|| PlannedRequest::passed_after(as_it_came, "panic"))
    }

    /// Unpacks a body where the engine computes: a few kilobytes may be many megabytes, and only so many at a time.
    async fn unpack_and_plan(&self, request: ModelRequest) -> PlannedRequest {
        let most = self.settings().max_body;
        let Some(plain) = body::unpack_body(&request.headers, &request.plain, most) else {
            return PlannedRequest::passed_after(request, "packed");
        };
        let written = match request.provider {
            Provider::OpenAiResponses => compaction::write_out_items(&plain),
            _ => None,
        };
        let request = ModelRequest {
            plain: written.clone().unwrap_or(plain),
            ..request
        };
        let plan = self.plan(&request).await;
        PlannedRequest {
            request,
            written,
            plan,
        }
    }

    async fn plan(&self, request: &ModelRequest) -> RequestPlan {
        let read = self.reread_request(request);
        let read = read.map_or_else(|| self.read_whole(request), Ok);
        let read = match read {
            Ok(read) => read,
            // What we cannot read, the provider may: it is its to judge.
            Err(reason) => {
                let facts = BodyFacts::read(&request.plain);
                let key = SessionKey::read(&request.tenant, &request.headers, None);
                let failure = OwnFailure::new(reason).about(key.name, facts.model());
                return RequestPlan {
                    class: RequestClass::Main,
                    form: facts.answer_form(&request.target),
                    action: PlannedAction::PassAfterFailure(failure),
                };
            }
        };
        let ReadRequest {
            parsed,
            rest,
            hashes,
        } = read;
        let facts = BodyFacts::read(&rest);
        let form = facts.answer_form(&request.target);
        let (provider, headers) = (request.provider, &request.headers);
        let class = match request.endpoint {
            Endpoint::Compact => RequestClass::Compaction(CompactionKind::Endpoint),
            _ => class::classify(
                provider,
                headers,
                &facts,
                &request.plain,
                &parsed.conversation,
            ),
        };
        let model = model_in_target(&request.target).or_else(|| facts.model());
        let action = match class {
            RequestClass::Main | RequestClass::SubAgent => {
                self.plan_turn(request, parsed, hashes, model).await
            }
            RequestClass::Compaction(kind)
                if self.settings().answer_compaction != CompactionAnswer::Pass =>
            {
                self.plan_answer(request, parsed, model, kind, form).await
            }
            _ => PlannedAction::Pass,
        };
        RequestPlan {
            class,
            form,
            action,
        }
    }

    /// Reads a request that nothing is known of; an error says why not.
    fn read_whole(&self, request: &ModelRequest) -> Result<ReadRequest, &'static str> {
        match weight::is_too_heavy(&request.plain, self.settings().max_session_bytes) {
            true => Err("too_many_parts"),
            false => ReadRequest::from_whole(request).ok_or("unreadable"),
        }
    }

    /// Reads a request behind what is known of it: most of a history has the bytes that it had in the request before.
    /// `None` where the whole of it must be read.
    fn reread_request(&self, request: &ModelRequest) -> Option<ReadRequest> {
        if request.plain.len() < LARGE_BODY {
            return None;
        }
        let key = SessionKey::read(&request.tenant, &request.headers, None);
        let live = self.sessions.find_likely(&key, &request.plain)?;
        let session = live.session.try_lock().ok()?;
        let state = session.state()?;
        let document = state.document()?;
        if document.format() != request.provider.format() {
            return None;
        }
        let read = document.reread(state.history(), &request.plain)?;
        let entries = &read.parsed.conversation.entries;
        let hashes = key.name.is_none().then(|| state.hash_entries(entries));
        Some(ReadRequest {
            hashes,
            parsed: read.parsed,
            rest: read.rest,
        })
    }

    async fn plan_turn(
        &self,
        request: &ModelRequest,
        parsed: ParsedTranscript,
        hashes: Option<Vec<EntryHash>>,
        model: Option<String>,
    ) -> PlannedAction {
        let in_body = parsed.conversation.session_id.as_deref();
        let key = SessionKey::read(&request.tenant, &request.headers, in_body);
        let found = self
            .sessions
            .find(&key, &parsed.conversation, hashes.as_deref());
        let live = match self.wait_for_engine(found).await {
            Ok(live) => live,
            Err(failure) => {
                let failure = OwnFailure::from(failure).about(key.name, model);
                return PlannedAction::PassAfterFailure(failure);
            }
        };
        let limit = self.limits.find(&request.upstream.name, model.as_deref());
        if parsed.conversation.tools.is_some() {
            live.note_request(request.plain.clone());
        }
        let mut session = live.session.lock().await;
        live.deliver_report(&mut session);
        session.use_model(model.as_deref(), limit);
        let prompt = self.wait_for_engine(session.preflight(parsed)).await;
        let window = self.window_of(model.as_deref(), limit);
        let action = match prompt {
            Ok(prompt) => {
                let body = &request.plain;
                self.sessions.note_progress(&key, &live, &session, body);
                live.note_pressure(&session, prompt.decision());
                let action = send_prompt(request, &prompt, Arc::clone(&live), model.clone());
                self.apply_offers(request, &session, action)
            }
            Err(EngineFailure::Error(error)) if error.kind() == ErrorKind::Budget => {
                PlannedAction::Refuse(TooLong {
                    tokens: needed_tokens(&error, window),
                    window,
                })
            }
            Err(failure) => PlannedAction::PassAfterFailure(failure.into()),
        };
        match action {
            PlannedAction::PassAfterFailure(failure) => {
                PlannedAction::PassAfterFailure(self.prepare_retry(failure, &live, model))
            }
            action => action,
        }
    }

    /// Begins a session anew whose call failed, since what it holds may be half done: it is there if the upstream refuses
    /// what goes out as it came.
    fn prepare_retry(
        &self,
        failure: OwnFailure,
        live: &Arc<LiveSession>,
        model: Option<String>,
    ) -> OwnFailure {
        let retry = SessionTurn {
            live: self.sessions.begin_anew(live),
            model: model.clone(),
            view: None,
            receipt: None,
            is_large: true,
            offers_lookups: false,
            nudge: None,
        };
        OwnFailure {
            retry: Some(retry),
            ..failure.about(Some(live.name.clone()), model)
        }
    }

    /// Writes the summary that an agent asks for; where there is nothing to summarize, its model does.
    async fn plan_answer(
        &self,
        request: &ModelRequest,
        mut parsed: ParsedTranscript,
        model: Option<String>,
        kind: CompactionKind,
        form: AnswerForm,
    ) -> PlannedAction {
        kind.drop_question(&mut parsed.conversation);
        let in_body = parsed.conversation.session_id.as_deref();
        let key = SessionKey::read(&request.tenant, &request.headers, in_body);
        let answer = SummaryAnswer {
            kind,
            provider: request.provider,
            form,
            model: model.as_deref().unwrap_or_default(),
            text: "",
            receipt: "",
        };
        // An agent may ask once more, whether its summary lacks anything: what is proved is given again.
        let given = self
            .sessions
            .find_given_summary(&key.scope, &parsed.conversation);
        if let Some(given) = given {
            return PlannedAction::Answer(
                SummaryAnswer {
                    text: kind.unwrap_text(&given.text),
                    receipt: &given.receipt,
                    ..answer
                }
                .write_for(&given.session),
            );
        }
        let found = self.find_summarized(request, &key, parsed, kind).await;
        let (live, parsed) = match found {
            Ok(found) => found,
            Err(action) => return action,
        };
        let limit = self.limits.find(&request.upstream.name, model.as_deref());
        // Beside the live session: an agent may ask ahead and go on from its old history for a while.
        let mut session = match live.session.try_lock() {
            Ok(session) => session.fork(),
            Err(_) => self.sessions.compact().session(&*live.name),
        };
        session.use_model(model.as_deref(), limit);
        let made = self.wait_for_engine(session.summarize(parsed, None));
        let made = match made.await {
            Ok(Some(made)) => made,
            Ok(None) => return PlannedAction::Pass,
            Err(failure) => {
                let failure = OwnFailure::from(failure).about(key.name, model);
                return PlannedAction::PassAfterFailure(failure);
            }
        };
        let receipt = &made.receipt.receipt_id;
        self.sessions.note_answer(&key, &live, receipt);
        let ours = SummaryAnswer {
            text: &made.text,
            receipt,
            ..answer
        }
        .write_for(&live.name);
        let augments = self.settings().answer_compaction == CompactionAnswer::Augment;
        let ledger = session.state().and_then(SessionState::known_ledger);
        match ledger.filter(|_| augments && kind.is_readable()) {
            Some(ledger) => {
                let proof = SummaryProof {
                    ledger: Arc::clone(ledger),
                    receipt: receipt.clone(),
                    session: live.name.clone(),
                };
                PlannedAction::Augment(proof, ours)
            }
            None => PlannedAction::Answer(ours),
        }
    }

    /// Finds the session and the history that an agent wants a summary of.
    async fn find_summarized(
        &self,
        request: &ModelRequest,
        key: &SessionKey,
        parsed: ParsedTranscript,
        kind: CompactionKind,
    ) -> Result<(Arc<LiveSession>, ParsedTranscript), PlannedAction> {
        if kind != CompactionKind::OpenCode {
            let found = self.sessions.find(key, &parsed.conversation, None);
            return match self.wait_for_engine(found).await {
                Ok(live) => Ok((live, parsed)),
                Err(failure) => {
                    let failure = OwnFailure::from(failure).about(key.name.clone(), None);
                    Err(PlannedAction::PassAfterFailure(failure))
                }
            };
        }
        // What opencode sends is cut short, and anybody's words could stand for the user's in it.
        let last = self.sessions.find_last_request(key);
        let (live, body) = last.ok_or(PlannedAction::Pass)?;
        let format = Some(request.provider.format());
        let parsed = format::parse(body, format, TranscriptScope::Live);
        Ok((live, parsed.map_err(|_| PlannedAction::Pass)?))
    }

    /// Makes a smaller prompt of a request that its upstream refused; `None` where there is none.
    pub(crate) async fn shrink_request(
        self: &Arc<Self>,
        request: ModelRequest,
        turn: &SessionTurn,
        overflow: Overflow,
    ) -> Option<SessionTurn> {
        let (live, model) = (Arc::clone(&turn.live), turn.model.clone());
        if let Some(limit) = overflow.limit {
            self.limits
                .learn(&request.upstream.name, model.as_deref(), limit);
        }
        let shrunk = self.run_engine(async move |gateway| {
            let format = Some(request.provider.format());
            let parsed =
                format::parse(request.plain.clone(), format, TranscriptScope::Live).ok()?;
            let mut session = live.session.lock().await;
            if session.state().is_none() {
                let limit = gateway
                    .limits
                    .find(&request.upstream.name, model.as_deref());
                session.use_model(model.as_deref(), limit);
            }
            let shrunk = gateway.wait_for_engine(session.shrink(parsed, overflow));
            let prompt = shrunk.await.ok()??;
            let action = send_prompt(&request, &prompt, Arc::clone(&live), model);
            match gateway.apply_offers(&request, &session, action) {
                PlannedAction::Send(turn) => Some(turn),
                _ => None,
            }
        });
        shrunk.await?
    }

    /// Adds what is done with a request only where its user asked for it: tools of ours if its history was compacted, and a
    /// nudge for a client whose history is longer than what is sent.
    fn apply_offers(
        &self,
        request: &ModelRequest,
        session: &Session,
        action: PlannedAction,
    ) -> PlannedAction {
        let PlannedAction::Send(turn) = action else {
            return action;
        };
        let settings = self.settings();
        let is_compacted = session
            .state()
            .is_some_and(|state| state.known_ledger().is_some());
        let sent = turn.view.as_ref().unwrap_or(&request.plain);
        let nudge = Nudge::new(request.plain.len(), sent.len()).filter(|_| settings.nudge_clients);
        let offered = match is_compacted && settings.offer_recall {
            true => lookup::offer_tools(request.provider, sent),
            false => None,
        };
        PlannedAction::Send(SessionTurn {
            offers_lookups: offered.is_some(),
            view: offered.or(turn.view),
            nudge,
            ..turn
        })
    }

    fn window_of(&self, model: Option<&str>, limit: Option<Tokens>) -> Tokens {
        self.sessions.compact().window(model).at_most(limit).tokens
    }
}

/// Sends a prompt, unless its provider would refuse what it accepted before.
fn send_prompt(
    request: &ModelRequest,
    prompt: &Prompt,
    live: Arc<LiveSession>,
    model: Option<String>,
) -> PlannedAction {
    let Ok(body) = prompt.body() else {
        return PlannedAction::PassAfterFailure(OwnFailure::new("emit"));
    };
    let is_unchanged = body == request.plain;
    let broken = match is_unchanged {
        true => None,
        false => find_broken_rule(request, &body),
    };
    if let Some(detail) = broken {
        return PlannedAction::PassAfterFailure(OwnFailure {
            detail,
            ..OwnFailure::new("invalid_view")
        });
    }
    let decision = prompt.decision();
    PlannedAction::Send(SessionTurn {
        live,
        model,
        view: (!is_unchanged).then_some(body),
        receipt: prompt.receipt().map(|receipt| receipt.receipt_id.clone()),
        is_large: decision.tokens.0.saturating_mul(2) >= decision.window.0,
        offers_lookups: false,
        nudge: None,
    })
}

/// Returns how a view breaks a rule that the original keeps, if it does.
fn find_broken_rule(request: &ModelRequest, view: &Bytes) -> Option<String> {
    let broken = |body: &[u8]| validate::check(request.provider, Strictness::Vendor, body);
    let Ok(found) = broken(view) else {
        return Some("the view cannot be checked".to_owned());
    };
    if found.is_empty() {
        return None;
    }
    let before = broken(&request.plain).unwrap_or_default();
    let was_broken = |rule| before.iter().any(|violation| violation.rule == rule);
    let new = found.iter().find(|found| !was_broken(found.rule))?;
    Some(format!(
        "{} {}: {}",
        new.rule.id, new.rule.name, new.message
    ))
}

/// Returns the model that a path of Gemini names.
fn model_in_target(target: &str) -> Option<String> {
    let (before, _) = target
        .split_once(":generateContent")
        .or_else(|| target.split_once(":streamGenerateContent"))?;
    before.rsplit('/').next().map(str::to_owned)
}

/// Returns what a prompt needs that does not fit, as far as an error says it.
fn needed_tokens(error: &Error, window: Tokens) -> Tokens {
    use compact::manager::{CompactError, RuntimeError};
    let needed = match error {
        Error::Runtime(RuntimeError::Compact(error)) => match error {
            CompactError::InsufficientBudget { needed, .. } => *needed,
            CompactError::InstructionsTooLarge {
                system,
                tools,
                needed,
                ..
            } => *system + *tools + *needed,
            _ => Tokens(0),
        },
        _ => Tokens(0),
    };
    needed.max(Tokens(window.0 + 1))
}

fn failure_name(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Config => "config",
        ErrorKind::Input => "unreadable",
        ErrorKind::Budget => "budget",
        ErrorKind::Summarizer => "summarizer",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Busy => "busy",
        ErrorKind::Storage => "storage",
        ErrorKind::Unexpected => "unexpected",
    }
}
