//! What a server's refusal means to whoever configured it.

use std::error::Error;

use compact_runtime::port::catalog::CatalogError;
use tokio_postgres::error::SqlState;

use super::{ServerError, tls::TlsError};

/// What is wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The address, the password or the user's rights are not right.
    Refused { reason: String, advice: String },
    /// Nobody answers.
    Unreachable { reason: String, advice: String },
}

impl ServerError {
    /// The error of a catalog whose `action` this stopped.
    pub(crate) fn of_catalog(self, action: String) -> CatalogError {
        match self.fault() {
            Some(Fault::Refused { reason, advice }) => CatalogError::Refused {
                action,
                reason,
                advice,
            },
            Some(Fault::Unreachable { reason, advice }) => CatalogError::Unreachable {
                action,
                reason,
                advice,
            },
            None => CatalogError::Store {
                action,
                source: self.into(),
            },
        }
    }

    /// `None` for what no setting can mend.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self {
            ServerError::Unreachable { source, .. } => Some(on_connecting(source)),
            ServerError::Tls(error @ TlsError::RootCertificate(..)) => {
                Some(refused(words(error), "name a readable file in PEM"))
            }
            ServerError::Sql(error) => on_asking(error),
            _ => None,
        }
    }
}

fn on_connecting(error: &tokio_postgres::Error) -> Fault {
    let (said, state) = (words(error), error.code());
    if state == Some(&SqlState::INVALID_PASSWORD) || said.contains("password missing") {
        return refused(said, "set PGPASSWORD to the password of this user");
    }
    if state == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
        return refused(said, "name another user, or let this one in (pg_hba.conf)");
    }
    if state == Some(&SqlState::INVALID_CATALOG_NAME) {
        return refused(said, "create it (`createdb`), or name another one");
    }
    if said.contains("does not support TLS") {
        let advice = "turn TLS on there, or say sslmode=prefer or sslmode=disable";
        return refused(said, advice);
    }
    if said.contains("TLS") || said.contains("certificate") {
        let advice = "name the server's authority with sslrootcert, and the server as its \
                      certificate does";
        return refused(said, advice);
    }
    Fault::Unreachable {
        reason: said,
        advice: "check host and port in storage.catalog, and that the server runs".to_owned(),
    }
}

fn on_asking(error: &tokio_postgres::Error) -> Option<Fault> {
    let state = error.code()?;
    let advice = if *state == SqlState::INSUFFICIENT_PRIVILEGE {
        "let a user who may create a schema run `compactctl catalog migrate`, and grant this one \
         what it lacks"
    } else if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
        "name a server that may be written to"
    } else {
        return None;
    };
    Some(refused(words(error), advice))
}

fn refused(reason: String, advice: &str) -> Fault {
    Fault::Refused {
        reason,
        advice: advice.to_owned(),
    }
}

/// An error in the server's own words, the client's wrapping left out.
fn words(error: &dyn Error) -> String {
    let mut said = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        said.push(error.to_string());
        next = error.source();
    }
    let said = said.join(": ");
    let trimmed = said.trim_start_matches("db error: ");
    trimmed.trim_start_matches("FATAL: ").to_owned()
}
