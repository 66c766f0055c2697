//! How a manager is put together: what it must have is given to `new`, and the rest has a default.
//!
//! Every `with_…` consumes the manager; on a clone it makes another one that differs in that respect.

use std::sync::Arc;

use compact_core::policy::Policy;
use compact_core::redact::Redactor;
use compact_core::token::{Estimator, Tokens};

use super::{ArchiveMode, Manager};
use crate::port::archive::ArchiveStore;
use crate::port::catalog::SessionCatalog;
use crate::port::clock::{Clock, SystemClock};
use crate::port::embedder::Embedder;
use crate::port::event::{EventSink, SilentSink};
use crate::port::summarizer::Summarizer;

impl Manager {
    /// Makes a manager that records in `catalog`, counts with `estimator`, keeps views within `window`
    /// and applies `redactor` to all that it makes and tells. It has the default policy and the clock of
    /// the machine, archives nothing, asks no model and tells nobody.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use compact_core::policy::Policy;
    /// use compact_core::redact::{Redactor, RedactionRules};
    /// use compact_core::token::{Chars4, Tokens};
    /// use compact_runtime::Manager;
    /// use compact_runtime::port::archive::MemoryArchive;
    /// use compact_runtime::port::catalog::MemoryCatalog;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let redactor = Redactor::new(&RedactionRules::default())?;
    /// let catalog = Arc::new(MemoryCatalog::default());
    /// let manager = Manager::new(catalog, Arc::new(Chars4), Arc::new(redactor), Tokens(128_000))
    ///     .with_archive(Some(Arc::new(MemoryArchive::default())));
    /// let eager = manager.clone().with_policy(Policy { trigger_pct: 0.6, ..Policy::default() });
    /// assert_eq!((manager.window(), eager.policy().trigger_pct), (Tokens(128_000), 0.6));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(
        catalog: Arc<dyn SessionCatalog>,
        estimator: Arc<dyn Estimator>,
        redactor: Arc<Redactor>,
        window: Tokens,
    ) -> Manager {
        Manager {
            archive: None,
            catalog,
            sink: Arc::new(SilentSink),
            estimator,
            policy: Policy::default(),
            window,
            redactor,
            archive_mode: ArchiveMode::default(),
            summarizer: None,
            embedder: None,
            clock: Arc::new(SystemClock),
            ledgers: Arc::default(),
        }
    }

    /// Keeps originals in `archive`; with `None`, what a view does not show is lost, and an event says so.
    #[must_use]
    pub fn with_archive(self, archive: Option<Arc<dyn ArchiveStore>>) -> Manager {
        Manager { archive, ..self }
    }

    /// Keeps as much of an original as `mode` says.
    #[must_use]
    pub fn with_archive_mode(self, mode: ArchiveMode) -> Manager {
        Manager {
            archive_mode: mode,
            ..self
        }
    }

    /// Records receipts in `catalog`, and looks for them there.
    #[must_use]
    pub fn with_catalog(self, catalog: Arc<dyn SessionCatalog>) -> Manager {
        Manager { catalog, ..self }
    }

    /// Emits events to `sink`.
    #[must_use]
    pub fn with_sink(self, sink: Arc<dyn EventSink>) -> Manager {
        Manager { sink, ..self }
    }

    /// Decides as `policy` says.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Manager {
        Manager { policy, ..self }
    }

    /// Counts tokens with `estimator`.
    #[must_use]
    pub fn with_estimator(self, estimator: Arc<dyn Estimator>) -> Manager {
        Manager { estimator, ..self }
    }

    /// Keeps prompts within `window`.
    #[must_use]
    pub fn with_window(self, window: Tokens) -> Manager {
        Manager { window, ..self }
    }

    /// Applies `redactor` to every summary, to what a model is asked, and to events.
    #[must_use]
    pub fn with_redactor(self, redactor: Arc<Redactor>) -> Manager {
        Manager { redactor, ..self }
    }

    /// Asks `summarizer` for prose; with `None`, a summary is the ledger's alone.
    #[must_use]
    pub fn with_summarizer(self, summarizer: Option<Arc<dyn Summarizer>>) -> Manager {
        Manager { summarizer, ..self }
    }

    /// Asks `embedder` what messages are about, for semantic pruning; with `None`, their words decide.
    #[must_use]
    pub fn with_embedder(self, embedder: Option<Arc<dyn Embedder>>) -> Manager {
        Manager { embedder, ..self }
    }

    /// Asks no model at all.
    #[must_use]
    pub fn without_models(self) -> Manager {
        self.with_summarizer(None).with_embedder(None)
    }

    /// Dates records and events by `clock`.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Manager {
        Manager { clock, ..self }
    }

    /// Returns where originals are kept, if they are.
    pub fn archive(&self) -> Option<&Arc<dyn ArchiveStore>> {
        self.archive.as_ref()
    }

    /// Returns where receipts are recorded.
    pub fn catalog(&self) -> &Arc<dyn SessionCatalog> {
        &self.catalog
    }

    /// Returns how tokens are counted.
    pub fn estimator(&self) -> &Arc<dyn Estimator> {
        &self.estimator
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the size of the window that prompts are kept within.
    pub fn window(&self) -> Tokens {
        self.window
    }
}
