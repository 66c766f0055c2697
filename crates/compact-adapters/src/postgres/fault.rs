//! What a server's refusal means to whoever configured it.

use std::error::Error;

use compact_runtime::port::catalog::CatalogError;
use tokio_postgres::error::SqlState;

use super::{PostgresError, tls::TlsError};

/// What is wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// The address, the password or the user's rights are not right.
    Refused { reason: String, advice: String },
    /// Nobody answers.
    Unreachable { reason: String, advice: String },
}

impl PostgresError {
    /// The error of a catalog whose `action` this stopped.
    pub(crate) fn into_catalog_error(self, action: String) -> CatalogError {
        match self.to_fault() {
            Some(ServerFault::Refused { reason, advice }) => CatalogError::Refused {
                action,
                reason,
                advice,
            },
            Some(ServerFault::Unreachable { reason, advice }) => CatalogError::Unreachable {
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
    pub(super) fn to_fault(&self) -> Option<ServerFault> {
        match self {
            PostgresError::Unreachable { source, .. } => Some(explain_connect_error(source)),
            PostgresError::Tls(error @ TlsError::RootCertificate(..)) => Some(refused_fault(
                server_words(error),
                "name a readable file in PEM",
            )),
            PostgresError::Sql(error) => explain_query_error(error),
            _ => None,
        }
    }
}

fn explain_connect_error(error: &tokio_postgres::Error) -> ServerFault {
    let (said, state) = (server_words(error), error.code());
    if state == Some(&SqlState::INVALID_PASSWORD) || said.contains("password missing") {
        return refused_fault(said, "set PGPASSWORD to the password of this user");
    }
    if state == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
        return refused_fault(said, "name another user, or let this one in (pg_hba.conf)");
    }
    if state == Some(&SqlState::INVALID_CATALOG_NAME) {
        return refused_fault(said, "create it (`createdb`), or name another one");
    }
    if said.contains("does not support TLS") {
        let advice = "turn TLS on there, or say sslmode=prefer or sslmode=disable";
        return refused_fault(said, advice);
    }
    if said.contains("TLS") || said.contains("certificate") {
        let advice = "name the server's authority with sslrootcert, and the server as its \
                      certificate does";
        return refused_fault(said, advice);
    }
    ServerFault::Unreachable {
        reason: said,
        advice: "check host and port in storage.catalog, and that the server runs".to_owned(),
    }
}

fn explain_query_error(error: &tokio_postgres::Error) -> Option<ServerFault> {
    let state = error.code()?;
    let advice = if *state == SqlState::INSUFFICIENT_PRIVILEGE {
        "let a user who may create a schema run `compactctl catalog migrate`, and grant this one \
         what it lacks"
    } else if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
        "name a server that may be written to"
    } else {
        return None;
    };
    Some(refused_fault(server_words(error), advice))
}

fn refused_fault(reason: String, advice: &str) -> ServerFault {
    ServerFault::Refused {
        reason,
        advice: advice.to_owned(),
    }
}

/// An error in the server's own words, the client's wrapping left out.
fn server_words(error: &dyn Error) -> String {
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
