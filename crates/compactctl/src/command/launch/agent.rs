//! Which agent it is, whom it would ask, and what makes it ask the gateway.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{codex, opencode};
use crate::failure::Failure;

/// Where SDKs and agents look for the address of a provider.
const ANTHROPIC_URL: &str = "ANTHROPIC_BASE_URL";
const OPENAI_URL: &str = "OPENAI_BASE_URL";
const GEMINI_URL: &str = "GOOGLE_GEMINI_BASE_URL";

/// Tells the agent, and what it starts, where the gateway is.
const GATEWAY_URL: &str = "COMPACT_GATEWAY_URL";

/// Keeps Claude Code's tool search on, which it gives up at an address that is not Anthropic's.
const TOOL_SEARCH: (&str, &str) = ("ENABLE_TOOL_SEARCH", "true");
/// Makes Claude Code say what each request is for.
const HINT_HEADERS: (&str, &str) = ("CLAUDE_CODE_GATEWAY_HINT_HEADERS", "1");

/// An agent as it is to be started.
pub(super) struct AgentCommand {
    /// The program: a name or a path.
    pub(super) program: OsString,
    /// What it is called with.
    pub(super) arguments: Vec<OsString>,
    kind: AgentKind,
}

/// Agents whose ways are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgentKind {
    Claude,
    Codex,
    Gemini,
    OpenCode,
    /// Anything that reads the variables of providers' SDKs.
    Other,
}

/// A server that the agent would ask without a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UpstreamWish {
    Anthropic(String),
    /// The address as its clients have it, with its version at the end.
    OpenAi(String),
    Gemini(String),
    /// One that the agent's settings name.
    Named {
        /// What the agent calls it.
        id: String,
        /// What the gateway calls it.
        name: String,
        url: String,
    },
}

/// What an agent is started with, beside its own arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LaunchSettings {
    pub(super) variables: Vec<(&'static str, String)>,
    /// These stand before its own.
    pub(super) arguments: Vec<String>,
}

impl AgentCommand {
    /// Takes the words behind `launch`.
    pub(super) fn from_words(words: &[OsString]) -> Result<AgentCommand, Failure> {
        let no_agent = || {
            Failure::usage(
                "launch needs an agent",
                "for example: compactctl launch claude",
            )
        };
        let (program, arguments) = words.split_first().ok_or_else(no_agent)?;
        Ok(AgentCommand {
            program: program.clone(),
            arguments: arguments.to_vec(),
            kind: AgentKind::of_program(program),
        })
    }

    /// Returns the servers that the agent would ask.
    pub(super) fn upstream_wishes(&self) -> Result<Vec<UpstreamWish>, Failure> {
        let set = |name: &str, wish: fn(String) -> UpstreamWish| {
            let url = std::env::var(name).ok().filter(|url| !url.is_empty());
            url.map(wish)
        };
        let anthropic = set(ANTHROPIC_URL, UpstreamWish::Anthropic);
        let gemini = set(GEMINI_URL, UpstreamWish::Gemini);
        match self.kind {
            AgentKind::Claude => Ok(anthropic.into_iter().collect()),
            AgentKind::Gemini => Ok(gemini.into_iter().collect()),
            AgentKind::Codex => codex::upstream_wishes(),
            AgentKind::OpenCode => opencode::upstream_wishes(&self.program),
            AgentKind::Other => {
                let openai = set(OPENAI_URL, UpstreamWish::OpenAi);
                Ok(anthropic.into_iter().chain(openai).chain(gemini).collect())
            }
        }
    }

    /// Returns what makes the agent ask the gateway at `url`, which stands before what was wished for.
    pub(super) fn settings_for(
        &self,
        url: &str,
        wishes: &[UpstreamWish],
    ) -> Result<LaunchSettings, Failure> {
        let mut settings = match self.kind {
            AgentKind::Claude => LaunchSettings {
                variables: claude_variables(url),
                arguments: Vec::new(),
            },
            AgentKind::Codex => LaunchSettings {
                variables: Vec::new(),
                arguments: codex::arguments_for(url, wishes),
            },
            AgentKind::Gemini => LaunchSettings {
                variables: vec![(GEMINI_URL, url.to_owned())],
                arguments: Vec::new(),
            },
            AgentKind::OpenCode => LaunchSettings {
                variables: vec![opencode::variable_for(url, wishes)?],
                arguments: Vec::new(),
            },
            AgentKind::Other => LaunchSettings {
                variables: sdk_variables(url, wishes),
                arguments: Vec::new(),
            },
        };
        settings.variables.push((GATEWAY_URL, url.to_owned()));
        Ok(settings)
    }
}

impl AgentKind {
    fn of_program(program: &OsStr) -> AgentKind {
        let name = Path::new(program).file_stem().and_then(OsStr::to_str);
        match name {
            Some("claude") => AgentKind::Claude,
            Some("codex") => AgentKind::Codex,
            Some("gemini") => AgentKind::Gemini,
            Some("opencode") => AgentKind::OpenCode,
            _ => AgentKind::Other,
        }
    }
}

fn claude_variables(url: &str) -> Vec<(&'static str, String)> {
    let mut variables = vec![(ANTHROPIC_URL, url.to_owned())];
    for (name, value) in [TOOL_SEARCH, HINT_HEADERS] {
        if std::env::var_os(name).is_none() {
            variables.push((name, value.to_owned()));
        }
    }
    variables
}

/// Returns the variables of all SDKs.
fn sdk_variables(url: &str, wishes: &[UpstreamWish]) -> Vec<(&'static str, String)> {
    let is_openai = |wish: &UpstreamWish| matches!(wish, UpstreamWish::OpenAi(_));
    let openai = match wishes.iter().any(is_openai) {
        // The version is in the server's own address.
        true => format!("{url}/openai"),
        false => format!("{url}/v1"),
    };
    let mut variables = claude_variables(url);
    variables.push((OPENAI_URL, openai));
    variables.push((GEMINI_URL, url.to_owned()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_the_name_of_its_program() {
        for (program, kind) in [
            ("claude", AgentKind::Claude),
            ("/opt/bin/codex", AgentKind::Codex),
            ("gemini.cmd", AgentKind::Gemini),
            ("opencode", AgentKind::OpenCode),
            ("python3", AgentKind::Other),
        ] {
            assert_eq!(
                AgentKind::of_program(OsStr::new(program)),
                kind,
                "{program}"
            );
        }
    }

    #[test]
    fn an_address_of_openai_keeps_its_version() {
        let openai = |wishes: &[UpstreamWish]| {
            let variables = sdk_variables("http://g", wishes);
            let found = variables.into_iter().find(|(name, _)| *name == OPENAI_URL);
            found.map(|(_, value)| value)
        };
        assert_eq!(openai(&[]).as_deref(), Some("http://g/v1"));
        let relay = UpstreamWish::OpenAi("https://relay.example/v2".to_owned());
        assert_eq!(openai(&[relay]).as_deref(), Some("http://g/openai"));
    }
}
