//! Whose history a request carries: what its agent, its client or the body says, within its tenant.
//!
//! Names come from outside and become names of sessions, so they are taken as they are only where they are
//! short and plain. A history that nobody names is found by its entries; that is the engine's.

use http::HeaderMap;
use http::header::HeaderName;

use crate::access::Tenant;
use crate::header::{self, header_text};

/// Headers that name a session, the surest first.
const SESSION_HEADERS: [HeaderName; 7] = [
    header::SESSION,
    HeaderName::from_static("x-claude-code-session-id"),
    // Codex: each thread of a session has a history of its own.
    HeaderName::from_static("thread-id"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("session_id"),
    // opencode.
    HeaderName::from_static("x-session-id"),
    HeaderName::from_static("x-session-affinity"),
];

/// Names the sub-agent of a session.
const AGENT_HEADER: HeaderName = HeaderName::from_static("x-claude-code-agent-id");

/// The longest name that is taken as it is.
const LONGEST_NAME: usize = 128;

/// Whose history it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionKey {
    /// What opens the names of the tenant's sessions.
    pub(crate) scope: String,
    /// The session's name, its scope before it; none where nobody named it.
    pub(crate) name: Option<String>,
}

impl SessionKey {
    /// Reads who a request belongs to; `in_body` is what its body says.
    pub(crate) fn read(tenant: &Tenant, headers: &HeaderMap, in_body: Option<&str>) -> SessionKey {
        let scope = tenant.scope();
        let named = SESSION_HEADERS
            .iter()
            .find_map(|name| header_text(headers, name));
        let named = named.or(in_body).filter(|name| !name.trim().is_empty());
        let agent = header_text(headers, &AGENT_HEADER).filter(|agent| !agent.trim().is_empty());
        let name = named.map(|name| match agent {
            Some(agent) => format!("{scope}{}/{}", plain_name(name), plain_name(agent)),
            None => format!("{scope}{}", plain_name(name)),
        });
        SessionKey { scope, name }
    }
}

/// Returns a name as it is, or a hash of one that is long or odd.
fn plain_name(name: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@".contains(&b);
    match name.len() <= LONGEST_NAME && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => {
            let hash = blake3::hash(name.as_bytes()).to_hex();
            format!("name-{}", hash.get(..32).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn name(pairs: &[(&'static str, &'static str)], in_body: Option<&str>) -> Option<String> {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        SessionKey::read(&Tenant::default(), &pairs.collect(), in_body).name
    }

    #[test]
    fn agents_name_their_sessions_and_sub_agents_apart() {
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(
            name(&[("x-claude-code-session-id", "5f-1")], Some("other")),
            of("5f-1")
        );
        let sub = [
            ("x-claude-code-session-id", "5f-1"),
            ("x-claude-code-agent-id", "a7"),
        ];
        assert_eq!(name(&sub, None), of("5f-1/a7"));
        assert_eq!(
            name(&[("session-id", "s"), ("thread-id", "t")], None),
            of("t")
        );
        assert_eq!(
            name(
                &[("x-session-id", "ses_1"), ("x-compact-session", "mine")],
                None
            ),
            of("mine")
        );
        assert_eq!(name(&[], Some("in-body")), of("in-body"));
        assert_eq!(name(&[], None), None);
    }

    #[test]
    fn an_odd_name_is_a_hash() {
        let odd = name(&[("x-compact-session", "team/../other")], None).unwrap();
        assert!(odd.starts_with("name-") && odd.len() == 37, "{odd}");
    }
}
