//! Asking a model for the prose of the summaries that are measured.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use compact_core::engine::{self, CompactionInput};
use compact_core::prompt::SummaryContent;
use compact_core::summarize::Style;
use compact_core::token::Tokens;
use compact_runtime::port::summarizer::Summarizer;
use compact_runtime::summary_request::{self, SummaryRequest};
use tokio::runtime::Runtime;

/// Asks a model for prose and counts the requests.
pub(crate) struct ProseWriter {
    summarizer: Arc<dyn Summarizer>,
    driver: Runtime,
    asked: AtomicU64,
    answered: AtomicU64,
}

/// How many summaries were asked for, and how many came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProseCounts {
    /// Summaries that prose was asked for.
    pub asked: u64,
    /// Of those, summaries that got some.
    pub answered: u64,
}

/// The share of a view that prose is asked for, one in so many, and the most of it.
const SHARE: u64 = 6;
const LONGEST: Tokens = Tokens(2_000);

impl ProseWriter {
    pub(crate) fn new(summarizer: Arc<dyn Summarizer>) -> Result<ProseWriter, std::io::Error> {
        let mut driver = tokio::runtime::Builder::new_multi_thread();
        Ok(ProseWriter {
            summarizer,
            driver: driver.worker_threads(1).enable_all().build()?,
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        })
    }

    /// Returns a model's words about what the view of this input leaves out, if it has any.
    pub(crate) fn request_prose(
        &self,
        input: &CompactionInput<'_>,
        style: Style,
        budget: Tokens,
    ) -> SummaryContent {
        let Ok(source) = engine::summary_source(input) else {
            return SummaryContent::Ledger;
        };
        if source.entries.is_empty() {
            return SummaryContent::Ledger;
        }
        let limit = Tokens(budget.0 / SHARE).min(LONGEST);
        let request = SummaryRequest::new(source, style, limit, LONGEST);
        self.asked.fetch_add(1, Ordering::Relaxed);
        let told = self.driver.block_on(summary_request::request_summary(
            &*self.summarizer,
            &request,
        ));
        match told {
            Ok(told) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                SummaryContent::Prose(told.prose)
            }
            Err(_) => SummaryContent::Ledger,
        }
    }

    pub(crate) fn counts(&self) -> ProseCounts {
        ProseCounts {
            asked: self.asked.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for ProseWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Teller({})", self.summarizer.describe().name)
    }
}
