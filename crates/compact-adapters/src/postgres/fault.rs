//! What a server's refusal means to whoever configured it.

use std::error::Error;

use compact_runtime::port::catalog::CatalogError;
use tokio_postgres::error::SqlState;

use super::{PostgresError, tls::TlsError};

/// A fault of a server, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerFault {
    /// The address, the password or the user's rights are not right.
    Refused { reason: String, hint: String },
    /// The server does not answer, which may pass.
    Unreachable { reason: String, hint: String },
}

impl PostgresError {
    /// Returns the error of a catalog whose `action` this stopped.
    pub(crate) fn into_catalog_error(self, action: String) -> CatalogError {
        match self.to_fault() {
            Some(ServerFault::Refused { reason, hint }) => CatalogError::Refused {
                action,
                reason,
                hint,
            },
            Some(ServerFault::Unreachable { reason, hint }) => CatalogError::Unreachable {
                action,
                reason,
                hint,
            },
            None => CatalogError::Store {
                action,
                source: self.into(),
            },
        }
    }

    /// Explains an error that a setting can fix; `None` for any other.
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
        return refused_fault(said, "name another user, or admit this one (pg_hba.conf)");
    }
    if state == Some(&SqlState::INVALID_CATALOG_NAME) {
        return refused_fault(said, "create it (`createdb`), or name another one");
    }
    if said.contains("does not support TLS") {
        let hint = "turn on TLS there, or use sslmode=prefer or sslmode=disable";
        return refused_fault(said, hint);
    }
    if said.contains("TLS") || said.contains("certificate") {
        let hint = "name the certificate authority with sslrootcert, and the host as in its \
                      certificate";
        return refused_fault(said, hint);
    }
    ServerFault::Unreachable {
        reason: said,
        hint: "check host and port in storage.catalog, and that the server is running".to_owned(),
    }
}

fn explain_query_error(error: &tokio_postgres::Error) -> Option<ServerFault> {
    let state = error.code()?;
    let hint = if *state == SqlState::INSUFFICIENT_PRIVILEGE {
        "let a user who may create a schema run `compactctl catalog migrate`, and grant this \
         user the rights that it lacks"
    } else if *state == SqlState::READ_ONLY_SQL_TRANSACTION {
        "name a server that is writable"
    } else {
        return None;
    };
    Some(refused_fault(server_words(error), hint))
}

fn refused_fault(reason: String, hint: &str) -> ServerFault {
    ServerFault::Refused {
        reason,
        hint: hint.to_owned(),
    }
}

/// Returns an error in the server's own words, the client's wrapping left out.
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
