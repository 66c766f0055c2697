//! The rules of every boundary, compiled once and handed to whoever stands at one.

use std::sync::Arc;

use super::{Boundary, RedactError, RedactionRules, Redactor, Scrub};

/// A redactor for each boundary; one whose sink is off lets everything through.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    archive: Arc<Redactor>,
    export: Arc<Redactor>,
    summary: Arc<Redactor>,
}

impl Redaction {
    /// Compiles the rules; an error names the field and the pattern.
    pub fn new(rules: &RedactionRules) -> Result<Redaction, RedactError> {
        let at = |boundary| rules.redactor(boundary).map(Arc::new);
        Ok(Redaction {
            archive: at(Boundary::Archive)?,
            export: at(Boundary::Export)?,
            summary: at(Boundary::Summary)?,
        })
    }

    /// Adds a rule of the user's own at every boundary that is on.
    #[must_use]
    pub fn with_callback(mut self, name: &str, scrub: &Arc<dyn Scrub>) -> Redaction {
        for redactor in [&mut self.archive, &mut self.export, &mut self.summary] {
            if !redactor.is_off() {
                let with = Redactor::clone(redactor).with_callback(name, Arc::clone(scrub));
                *redactor = Arc::new(with);
            }
        }
        self
    }

    /// The redactor of one boundary.
    pub fn at(&self, boundary: Boundary) -> &Arc<Redactor> {
        match boundary {
            Boundary::Archive => &self.archive,
            Boundary::Export => &self.export,
            Boundary::Summary => &self.summary,
        }
    }
}
