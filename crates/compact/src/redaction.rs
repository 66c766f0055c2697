//! What is taken out of texts: what the configuration says, and what the program's own function finds.

use std::sync::Arc;

use compact_core::redact::{RedactError, RedactionBoundary, RedactionRules, Redactor, Scrub};

/// The name of the program's own function in counts and placeholders.
const CALLBACK_NAME: &str = "redact";

/// The redactor of every boundary, compiled once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactors {
    archive: Arc<Redactor>,
    export: Arc<Redactor>,
    summary: Arc<Redactor>,
    handed_original: Arc<Redactor>,
}

impl Redactors {
    /// Compiles the rules. The function applies wherever its boundary is on, whether or not the
    /// maintained rules do.
    pub(crate) fn new(
        rules: &RedactionRules,
        scrub: Option<&Arc<dyn Scrub>>,
    ) -> Result<Redactors, RedactError> {
        // A store of the program's own is outside: an original is redacted there as where text leaves
        // the process, if the archive's is redacted at all.
        let mut outside = rules.clone();
        outside.sinks.export = rules.sinks.archive;
        Ok(Redactors {
            archive: redactor_at(rules, RedactionBoundary::Archive, scrub)?,
            export: redactor_at(rules, RedactionBoundary::Export, scrub)?,
            summary: redactor_at(rules, RedactionBoundary::Summary, scrub)?,
            handed_original: redactor_at(&outside, RedactionBoundary::Export, scrub)?,
        })
    }

    /// Returns the redactor of one boundary.
    pub(crate) fn at(&self, boundary: RedactionBoundary) -> &Arc<Redactor> {
        match boundary {
            RedactionBoundary::Archive => &self.archive,
            RedactionBoundary::Export => &self.export,
            RedactionBoundary::Summary => &self.summary,
        }
    }

    /// Returns the redactor for originals that go to the program's own store.
    pub(crate) fn for_handed_original(&self) -> &Arc<Redactor> {
        &self.handed_original
    }
}

fn redactor_at(
    rules: &RedactionRules,
    boundary: RedactionBoundary,
    scrub: Option<&Arc<dyn Scrub>>,
) -> Result<Arc<Redactor>, RedactError> {
    let is_on = match boundary {
        RedactionBoundary::Archive => rules.sinks.archive,
        RedactionBoundary::Export => rules.sinks.export,
        RedactionBoundary::Summary => rules.sinks.summary_prompt,
    };
    let made = rules.redactor(boundary)?;
    Ok(Arc::new(match scrub {
        Some(scrub) if is_on => made.with_callback(CALLBACK_NAME, Arc::clone(scrub)),
        _ => made,
    }))
}

#[cfg(test)]
mod tests {
    use compact_core::redact::RedactionCounts;

    use super::*;

    #[test]
    fn a_callback_stands_at_every_boundary_that_is_on_and_keeps_json_whole() {
        let quotes = |text: &str| text.contains("falcon").then(|| "\"gone\"".to_owned());
        let scrub: Arc<dyn Scrub> = Arc::new(quotes);
        let all = Redactors::new(&RedactionRules::default(), Some(&scrub)).unwrap();
        let json = r#"{"a": "falcon", "b": 1}"#;
        let at = |boundary| {
            let redactor = all.at(boundary);
            redactor
                .redact_json(json, &mut RedactionCounts::new())
                .into_owned()
        };
        let changed = r#"{"a": "\"gone\"", "b": 1}"#;
        assert_eq!(at(RedactionBoundary::Summary), changed);
        assert_eq!(at(RedactionBoundary::Export), changed);
        assert_eq!(at(RedactionBoundary::Archive), json, "its sink is off");
    }
}
