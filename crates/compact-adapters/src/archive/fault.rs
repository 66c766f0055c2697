//! What a bucket's refusal means to whoever configured it.

use compact_runtime::port::archive::{ArchiveError, PackId};
use object_store::Error;

use super::ObjectArchive;

impl ObjectArchive {
    /// Returns the error of an `action` that the store stopped.
    pub(super) fn explain_store_error(&self, action: String, error: Error) -> ArchiveError {
        match &self.place {
            Some(place) => explain_bucket_error(action, place, error),
            None => super::archive_error(action, error),
        }
    }

    /// Returns the error of a pack that cannot be read.
    pub(super) fn explain_read_error(&self, pack: PackId, error: Error) -> ArchiveError {
        match error {
            Error::NotFound { .. } if !names_no_bucket(&error) => ArchiveError::Missing { pack },
            other => self.explain_store_error(format!("read pack {pack}"), other),
        }
    }
}

fn explain_bucket_error(action: String, place: &str, error: Error) -> ArchiveError {
    let said = error.to_string();
    if names_no_bucket(&error) {
        return ArchiveError::Refused {
            action,
            reason: format!("there is no {place}"),
            hint: "create it, or name another in storage.s3.bucket".to_owned(),
        };
    }
    // Without keys in the environment, the machine itself is asked for its role's.
    if said.contains("169.254.") {
        return ArchiveError::Refused {
            action,
            reason: format!("there are no credentials for the {place}"),
            hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned(),
        };
    }
    if is_denial(&error) {
        let code = error_code(&said).unwrap_or("access denied");
        return ArchiveError::Refused {
            action,
            reason: format!("the {place} denies access ({code})"),
            hint: "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may read, \
                     write and list there"
                .to_owned(),
        };
    }
    if said.contains("error sending request") {
        let cause = said.rsplit(": ").next().unwrap_or_default();
        return ArchiveError::Unreachable {
            action,
            reason: format!("the {place} does not answer: {cause}"),
            hint: "check storage.s3.endpoint, and that the server is running".to_owned(),
        };
    }
    super::archive_error(action, error)
}

fn names_no_bucket(error: &Error) -> bool {
    error.to_string().contains("NoSuchBucket")
}

fn is_denial(error: &Error) -> bool {
    matches!(
        error,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. }
    ) || ["403 Forbidden", "401 Unauthorized"]
        .iter()
        .any(|status| error.to_string().contains(status))
}

/// Returns the server's own word for what is wrong.
fn error_code(said: &str) -> Option<&str> {
    let (_, after) = said.split_once("<Code>")?;
    after.split_once("</Code>").map(|(code, _)| code)
}
