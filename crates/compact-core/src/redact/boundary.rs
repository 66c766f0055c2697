//! The rules of every boundary, compiled once and handed to whoever stands at one.

use std::sync::Arc;

use super::{RedactError, RedactionBoundary, RedactionRules, Redactor, Scrub};

/// A redactor for each boundary; one whose sink is off lets everything through.
#[derive(Clone, Debug, Default)]
pub struct BoundaryRedactors {
    archive: Arc<Redactor>,
    export: Arc<Redactor>,
    summary: Arc<Redactor>,
}

impl BoundaryRedactors {
    /// Compiles the rules; an error names the field and the pattern.
    pub fn new(rules: &RedactionRules) -> Result<BoundaryRedactors, RedactError> {
        let at = |boundary| rules.redactor(boundary).map(Arc::new);
        Ok(BoundaryRedactors {
            archive: at(RedactionBoundary::Archive)?,
            export: at(RedactionBoundary::Export)?,
            summary: at(RedactionBoundary::Summary)?,
        })
    }

    /// Adds a rule of the user's own at every boundary that is on.
    #[must_use]
    pub fn with_callback(mut self, name: &str, scrub: &Arc<dyn Scrub>) -> BoundaryRedactors {
        for redactor in [&mut self.archive, &mut self.export, &mut self.summary] {
            if !redactor.is_off() {
                let with = Redactor::clone(redactor).with_callback(name, Arc::clone(scrub));
                *redactor = Arc::new(with);
            }
        }
        self
    }

    /// The redactor of one boundary.
    pub fn redactor_at(&self, boundary: RedactionBoundary) -> &Arc<Redactor> {
        match boundary {
            RedactionBoundary::Archive => &self.archive,
            RedactionBoundary::Export => &self.export,
            RedactionBoundary::Summary => &self.summary,
        }
    }
}
