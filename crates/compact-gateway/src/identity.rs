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

/// What stands between a session's name and what tells one that a person made of it, such as `parser~before-1`.
const MADE_FROM: char = '~';

/// The longest name with that.
const LONGEST_MADE: usize = 200;

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
        // Whoever copies a name from a page has the scope before it already, which opens no other tenant's.
        let named = named.map(|name| name.strip_prefix(&scope).unwrap_or(name));
        let agent = header_text(headers, &AGENT_HEADER).filter(|agent| !agent.trim().is_empty());
        let name = named.map(|name| match agent {
            Some(agent) => format!("{scope}{}/{}", plain_name(name), plain_name(agent)),
            None => format!("{scope}{}", plain_name(name)),
        });
        SessionKey { scope, name }
    }
}

/// Returns a name as it is, or a hash of one that is long or odd. A slash is odd: what stands before it is a tenant.
fn plain_name(name: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@".contains(&b);
    let (origin, made) = name.split_once(MADE_FROM).unwrap_or((name, ""));
    let is_short = origin.len() <= LONGEST_NAME && name.len() <= LONGEST_MADE;
    let mut parts = origin.bytes().chain(made.bytes());
    match is_short && !origin.is_empty() && parts.all(|b| is_plain(b) || b == b'~') {
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
    fn a_session_that_a_person_made_from_another_one_goes_by_its_name() {
        for own in [
            "parser~before-1",
            "parser~before-1-2~next",
            "parser@7f~next",
        ] {
            let named = name(&[("x-compact-session", own)], None);
            assert_eq!(named.as_deref(), Some(own));
        }
        let long = "n".repeat(LONGEST_NAME);
        let own = format!("{long}~before-12");
        assert_eq!(name(&[], Some(&own)), Some(own));
        for odd in [
            format!("{long}n"),
            format!("{long}~{long}"),
            "~next".to_owned(),
        ] {
            assert!(name(&[], Some(&odd)).unwrap().starts_with("name-"), "{odd}");
        }
    }

    #[test]
    fn no_name_leaves_its_tenant() {
        let of = |text: &str| {
            let headers =
                HeaderMap::from_iter([(header::SESSION, HeaderValue::from_str(text).unwrap())]);
            SessionKey::read(&Tenant::named("alice"), &headers, None).name
        };
        for own in ["parser~before-1", "alice/parser~before-1"] {
            assert_eq!(of(own).as_deref(), Some("alice/parser~before-1"));
        }
        for other in [
            "bob/parser~before-1",
            "alice/bob/parser",
            "../bob/parser",
            "~/bob",
            "alice/alice/x",
        ] {
            let named = of(other).unwrap();
            assert!(named.starts_with("alice/name-"), "{other}: {named}");
        }
        let nobody = name(&[("x-compact-session", "bob/parser~before-1")], None);
        assert!(nobody.unwrap().starts_with("name-"));
    }

    #[test]
    fn an_odd_name_is_a_hash() {
        let odd = name(&[("x-compact-session", "team/../other")], None).unwrap();
        assert!(odd.starts_with("name-") && odd.len() == 37, "{odd}");
    }
}
