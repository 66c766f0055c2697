//! Asking a model for the prose of a summary.
//!
//! What leaves the view is cut into requests that fit the model's window, each answer is checked,
//! one that does not do is asked for again in the `brief` style, and the coverage is counted.
//! Nothing here changes anything: abandoning it at any point leaves no trace.

use std::borrow::Cow;

use compact_core::prompt::{
    self, AnswerError, ModelProse, PromptTemplate, ProseCoverage, SourceChunk, SummarySource,
};
use compact_core::redact::RedactionCounts;
use compact_core::summarize::Style;
use compact_core::token::{EstimatorExt, Tokens, Units};

use bytes::Bytes;

use crate::port::summarizer::{
    ModelQuestion, QuestionForm, Summarizer, SummarizerError, SummarizerInfo,
};

/// Why there is no prose.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// No answer.
    #[error(transparent)]
    NoAnswer(#[from] SummarizerError),
    /// An answer that is no summary, twice.
    #[error("{first}; asked for a brief one: {second}")]
    Unfit {
        /// What was wrong at first.
        first: AnswerError,
        /// What was wrong with the brief one.
        second: AnswerError,
    },
}

impl SummaryError {
    /// What is wrong, without words of the server: those may repeat what it was sent.
    pub fn kind(&self) -> String {
        match self {
            SummaryError::NoAnswer(error) => error.kind(),
            SummaryError::Unfit { .. } => self.to_string(),
        }
    }
}

/// What to tell, and how.
pub struct SummaryRequest<'a> {
    /// What leaves the view.
    pub source: SummarySource<'a>,
    /// How it is told.
    pub style: Style,
    /// What all the prose may cost.
    pub limit: Tokens,
    /// How much of that comes on top of the summary's own limit.
    pub extra: Tokens,
    /// Instructions of the user's own, instead of the style's.
    pub own_prompt: Option<&'a str>,
    /// The model of the session.
    pub model: Option<&'a str>,
    /// The window of the session's model.
    pub window: Tokens,
    /// The conversation as its own request, if the summarizer can go on from it.
    pub conversation: Option<WireConversation<'a>>,
}

impl<'a> SummaryRequest<'a> {
    /// Asks for prose of at most `limit` tokens about `source`, whose session has a model with this
    /// `window`. None of it comes on top of the summary's limit, the model is not named, and there is no
    /// conversation to go on from.
    pub fn new(
        source: SummarySource<'a>,
        style: Style,
        limit: Tokens,
        window: Tokens,
    ) -> SummaryRequest<'a> {
        SummaryRequest {
            source,
            style,
            limit,
            extra: Tokens(0),
            own_prompt: None,
            model: None,
            window,
            conversation: None,
        }
    }
}

/// A conversation as its provider is sent it.
#[derive(Clone, Copy)]
pub struct WireConversation<'a> {
    /// Its format.
    pub format: &'a str,
    /// Its bytes.
    pub body: &'a Bytes,
}

/// Prose, and why it is not more.
#[derive(Debug)]
pub struct ModelSummary {
    /// What was told.
    pub prose: ModelProse,
    /// What stopped it before all was told.
    pub stopped: Option<SummaryError>,
}

/// How an attempt ended that produced nothing usable.
enum RequestFailure {
    TooLong(Option<Tokens>, SummarizerError),
    NoSummary(SummaryError),
}

/// The least that one request is asked for.
const LEAST: u64 = 64;
/// Texts cost another tokenizer more than they cost ours: this share of the window is filled.
const FILLED: f64 = 0.75;
/// How often the requests are made smaller when the model says that they are too long.
const SHRINKS: u32 = 6;

/// Asks for the prose of a summary.
pub async fn request_summary(
    summarizer: &dyn Summarizer,
    telling: &SummaryRequest<'_>,
) -> Result<ModelSummary, SummaryError> {
    let mut about = summarizer.describe();
    if let Some(told) = telling.summarize_aligned(summarizer, &about).await {
        return told;
    }
    let mut size = telling.chunk_size(&about);
    let mut shrinks = 0;
    loop {
        match telling.summarize_chunks(summarizer, &about, size).await {
            Ok(told) => return Ok(told),
            Err(RequestFailure::TooLong(limit, _)) if shrinks < SHRINKS => {
                about.window = limit.or(about.window);
                size = telling.chunk_size(&about).min(Tokens(size.0 / 2));
                shrinks += 1;
            }
            Err(RequestFailure::TooLong(_, error)) => return Err(error.into()),
            Err(RequestFailure::NoSummary(untold)) => return Err(untold),
        }
    }
}

impl SummaryRequest<'_> {
    /// The tokens of conversation that one request carries.
    fn chunk_size(&self, about: &SummarizerInfo) -> Tokens {
        let estimator = self.source.estimator;
        let window = about.window.unwrap_or(self.window);
        let most = self.most(window);
        let instructions = self.template(self.style, most).instructions(most);
        let fixed = estimator.to_tokens(estimator.count_units(&instructions)) + Tokens(200);
        let filled = Tokens((window.0 as f64 * FILLED) as u64);
        (filled - fixed - self.answer_limit(most)).max(Tokens(LEAST))
    }

    /// The user's own prompt, or that of the style for an answer of this size. A model that refused the
    /// one is asked with the other, unless both are the same.
    fn template(&self, style: Style, limit: Tokens) -> Cow<'static, PromptTemplate> {
        match self.own_template(style) {
            Some(own) => Cow::Owned(own),
            None => Cow::Borrowed(PromptTemplate::for_limit(style, limit)),
        }
    }

    /// The same for a request that goes on from the conversation, whatever the size of its answer.
    fn aligned_template(&self, style: Style) -> Cow<'static, PromptTemplate> {
        match self.own_template(style) {
            Some(own) => Cow::Owned(own),
            None => Cow::Borrowed(prompt::template(style)),
        }
    }

    fn own_template(&self, style: Style) -> Option<PromptTemplate> {
        let own = self.own_prompt.filter(|_| style == self.style)?;
        Some(PromptTemplate::from_user(own))
    }

    /// The most that one request is asked for: a small model says little before it wanders off.
    fn most(&self, window: Tokens) -> Tokens {
        self.limit.min(Tokens(window.0 / 16)).max(Tokens(LEAST))
    }

    /// Room for an answer that does not quite keep to its limit.
    fn answer_limit(&self, limit: Tokens) -> Tokens {
        Tokens(limit.0 * 5 / 4 + 16)
    }

    async fn summarize_chunks(
        &self,
        summarizer: &dyn Summarizer,
        about: &SummarizerInfo,
        size: Tokens,
    ) -> Result<ModelSummary, RequestFailure> {
        let chunks = self.source.chunks(size);
        // What is left out for want of requests is the oldest: the ledger knows it longest.
        let skipped = chunks.len().saturating_sub(about.most_requests);
        let asked = chunks.get(skipped..).unwrap_or_default();
        let window = about.window.unwrap_or(self.window);
        let limit = Tokens(self.limit.0 / (asked.len() as u64).max(1));
        let limit = limit.min(self.most(window)).max(Tokens(LEAST));
        let mut told = ModelSummary {
            prose: self.empty_prose(about, &chunks, &self.template(self.style, limit)),
            stopped: None,
        };
        for chunk in asked {
            match self.summarize_chunk(summarizer, about, chunk, limit).await {
                Ok(part) => told.add_part(part, chunk, self.source.estimator),
                Err(SummaryError::NoAnswer(error @ SummarizerError::TooLong { limit, .. })) => {
                    return Err(RequestFailure::TooLong(limit, error));
                }
                Err(untold) => {
                    let over = matches!(untold, SummaryError::NoAnswer(_));
                    told.stopped = Some(untold);
                    if over {
                        break;
                    }
                }
            }
        }
        match told.stopped.take() {
            Some(untold) if told.prose.parts.is_empty() => Err(RequestFailure::NoSummary(untold)),
            stopped => Ok(ModelSummary { stopped, ..told }),
        }
    }

    fn empty_prose(
        &self,
        about: &SummarizerInfo,
        chunks: &[SourceChunk],
        template: &PromptTemplate,
    ) -> ModelProse {
        let all: Units = chunks.iter().map(|c| c.cost).sum();
        ModelProse {
            author: about.name.clone(),
            template: template.to_string(),
            parts: Vec::new(),
            extra: self.extra,
            coverage: ProseCoverage {
                of_chunks: chunks.len() as u64,
                of_entries: chunks.iter().map(|c| c.entries).sum(),
                of_tokens: self.source.estimator.to_tokens(all),
                ..ProseCoverage::default()
            },
        }
    }

    /// One stretch: in the style that was asked for, else briefly.
    async fn summarize_chunk(
        &self,
        summarizer: &dyn Summarizer,
        about: &SummarizerInfo,
        chunk: &SourceChunk,
        limit: Tokens,
    ) -> Result<String, SummaryError> {
        let messages = match about.reads {
            QuestionForm::Prompt => Vec::new(),
            QuestionForm::Messages => self.source.messages(chunk),
        };
        let question = |style: Style| {
            let template = self.template(style, limit);
            let ask = self.source.build_prompt(chunk, &template, limit);
            ModelQuestion {
                style,
                messages: messages.clone(),
                system: ask.system,
                prompt: ask.prompt,
                conversation: None,
                limit: self.answer_limit(limit),
                model: self.model.map(str::to_owned),
            }
        };
        self.ask_twice(summarizer, chunk.cost, question).await
    }

    async fn ask_twice(
        &self,
        summarizer: &dyn Summarizer,
        cost: Units,
        question: impl Fn(Style) -> ModelQuestion,
    ) -> Result<String, SummaryError> {
        let estimator = self.source.estimator;
        let answer = summarizer.answer(&question(self.style)).await?;
        let first = match prompt::accept_answer(&answer, cost, estimator) {
            Ok(text) => return Ok(text),
            Err(unfit) => unfit,
        };
        let answer = summarizer.answer(&question(Style::Brief)).await?;
        prompt::accept_answer(&answer, cost, estimator)
            .map_err(|second| SummaryError::Unfit { first, second })
    }

    /// One request behind the conversation itself, which its provider has in its cache; `None` when
    /// the summarizer cannot, or the conversation does not do for one more request.
    async fn summarize_aligned(
        &self,
        summarizer: &dyn Summarizer,
        about: &SummarizerInfo,
    ) -> Option<Result<ModelSummary, SummaryError>> {
        let conversation = self.conversation?;
        if about.continues != Some(conversation.format) {
            return None;
        }
        let text = std::str::from_utf8(conversation.body).ok()?;
        let body = self
            .source
            .redactor
            .redact_json(text, &mut RedactionCounts::new());
        let body = Bytes::from(body.into_owned().into_bytes());
        let question = |style: Style| ModelQuestion {
            style,
            messages: Vec::new(),
            system: String::new(),
            prompt: self
                .source
                .build_aligned_prompt(&self.aligned_template(style), self.limit),
            conversation: Some(body.clone()),
            limit: self.answer_limit(self.limit),
            model: self.model.map(str::to_owned),
        };
        let estimator = self.source.estimator;
        let whole = estimator.to_units(self.source.total_tokens());
        let part = match self.ask_twice(summarizer, whole, question).await {
            Err(SummaryError::NoAnswer(
                SummarizerError::TooLong { .. }
                | SummarizerError::Unsuitable(_)
                | SummarizerError::Rejected { .. },
            )) => return None,
            Err(untold) => return Some(Err(untold)),
            Ok(part) => part,
        };
        let all = SourceChunk::whole_source(&self.source);
        let mut told = ModelSummary {
            prose: self.empty_prose(
                about,
                std::slice::from_ref(&all),
                &self.aligned_template(self.style),
            ),
            stopped: None,
        };
        told.add_part(part, &all, estimator);
        Some(Ok(told))
    }
}

impl ModelSummary {
    fn add_part(
        &mut self,
        part: String,
        chunk: &SourceChunk,
        estimator: &dyn compact_core::token::Estimator,
    ) {
        let coverage = &mut self.prose.coverage;
        coverage.chunks += 1;
        coverage.entries += chunk.entries;
        let tokens = coverage.tokens + estimator.to_tokens(chunk.cost);
        coverage.tokens = tokens.min(coverage.of_tokens);
        self.prose.parts.push(part);
    }
}
