//! Where a database is: `postgres://user@host:port/database?sslmode=verify-full`.
//!
//! A password is no part of it: addresses are written to files, shown and quoted in errors. It comes
//! from the environment, as for every other client of PostgreSQL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::CONNECTIONS;

/// The variable that holds the password.
const PASSWORD: &str = "PGPASSWORD";

/// The protection of a connection, with the names of PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// No encryption.
    Disable,
    /// Encrypted if the server can, with whoever answers.
    #[default]
    Prefer,
    /// Encrypted, with whoever answers; with `sslrootcert` as `verify-ca`.
    Require,
    /// Encrypted, with a server whose certificate a trusted authority signed.
    VerifyCa,
    /// The same, and the certificate is for this very host.
    VerifyFull,
}

impl SslMode {
    fn from_name(name: &str) -> Option<SslMode> {
        Some(match name {
            "disable" => SslMode::Disable,
            "allow" | "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return None,
        })
    }

    fn to_client_mode(self) -> tokio_postgres::config::SslMode {
        use tokio_postgres::config::SslMode as Wire;
        match self {
            SslMode::Disable => Wire::Disable,
            SslMode::Prefer => Wire::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Wire::Require,
        }
    }
}

/// An address that was understood.
#[derive(Clone, Debug)]
pub struct PostgresAddress {
    pub(super) config: Config,
    pub(super) ssl: SslMode,
    /// Who is trusted, as PEM; unset, whoever the system trusts.
    pub(super) root_certificate: Option<PathBuf>,
    pub(super) connections: usize,
}

/// Why an address cannot be used; the address itself is not repeated, it may hold a secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PostgresAddressError {
    /// It begins with something else.
    #[error("must begin with postgres:// or postgresql://")]
    Scheme,
    /// It names a password.
    #[error("must not hold a password: set the variable PGPASSWORD instead")]
    Password,
    /// It names no host.
    #[error("must name a host, as in postgres://user@host/database")]
    NoHost,
    /// A parameter has a value that it cannot have.
    #[error("has a bad {parameter}: use {expected}")]
    Parameter {
        /// The name of the parameter.
        parameter: &'static str,
        /// The values that it may have.
        expected: &'static str,
    },
    /// The client library does not take it.
    #[error("cannot be parsed: {0}")]
    Malformed(String),
}

impl FromStr for PostgresAddress {
    type Err = PostgresAddressError;

    fn from_str(url: &str) -> Result<PostgresAddress, PostgresAddressError> {
        let schemes = ["postgres://", "postgresql://"];
        if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(PostgresAddressError::Scheme);
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut ours = OwnParameters::default();
        let rest: Vec<&str> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| ours.take_parameter(pair).transpose())
            .collect::<Result<_, _>>()?;
        let mut config = Config::from_str(&format!("{place}?{}", rest.join("&")))
            .map_err(|error| PostgresAddressError::Malformed(malformed_reason(&error)))?;
        if config.get_password().is_some() {
            return Err(PostgresAddressError::Password);
        }
        if config.get_hosts().is_empty() {
            return Err(PostgresAddressError::NoHost);
        }
        config.ssl_mode(ours.ssl.to_client_mode());
        if config.get_application_name().is_none() {
            config.application_name("compact");
        }
        Ok(PostgresAddress {
            config,
            ssl: ours.ssl,
            root_certificate: ours.root_certificate,
            connections: ours.connections.unwrap_or(CONNECTIONS),
        })
    }
}

impl PostgresAddress {
    /// Adds the password from the environment, if it is set.
    pub fn with_password_from_env(mut self) -> PostgresAddress {
        if let Some(password) = std::env::var_os(PASSWORD)
            && let Some(password) = password.to_str()
        {
            self.config.password(password);
        }
        self
    }
}

/// Parameters that the client library does not know, or knows less of.
#[derive(Default)]
struct OwnParameters {
    ssl: SslMode,
    root_certificate: Option<PathBuf>,
    connections: Option<usize>,
}

impl OwnParameters {
    /// Takes a pair that is ours; gives back one that is not.
    fn take_parameter<'a>(
        &mut self,
        pair: &'a str,
    ) -> Result<Option<&'a str>, PostgresAddressError> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let bad = |parameter, expected| PostgresAddressError::Parameter {
            parameter,
            expected,
        };
        match name {
            "sslmode" => {
                let expected = "disable, prefer, require, verify-ca or verify-full";
                let mode = SslMode::from_name(value);
                self.ssl = mode.ok_or(bad("sslmode", expected))?;
            }
            "sslrootcert" => self.root_certificate = Some(percent_decode(value).into()),
            "pool" => {
                let number = value.parse().ok().filter(|n| (1..=1000).contains(n));
                self.connections = Some(number.ok_or(bad("pool", "a number from 1 to 1000"))?);
            }
            _ => return Ok(Some(pair)),
        }
        Ok(None)
    }
}

/// Decodes percent escapes such as `%2F`.
fn percent_decode(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.split_at_checked(2).and_then(|(hex, after)| {
            let hex = std::str::from_utf8(hex).ok()?;
            Some((u8::from_str_radix(hex, 16).ok()?, after))
        });
        match (first, code) {
            (b'%', Some((byte, after))) => {
                bytes.push(byte);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns what the library says of an address, without repeating it.
fn malformed_reason(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{separator}{name}")?,
                Host::Unix(path) => write!(f, "{separator}{}", path.display())?,
            }
            if let Some(port) = ports.get(at).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        match self.config.get_dbname() {
            Some(name) => write!(f, "/{name}"),
            None => Ok(()),
        }
    }
}
