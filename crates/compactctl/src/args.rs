//! The command line, as clap reads it. Nothing here acts.

#[cfg(feature = "gateway")]
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use compact::config::ConfigFlag;
use compact::format::Format;
use compact::format::validate::Provider;
use compact::hook::HookAgent;
use compact::policy::{Profile, Style};
#[cfg(feature = "eval")]
use compact_eval::method::Method;

use crate::output::ExistingFile;

/// Keeps a long-running LLM agent inside its context window without losing what matters.
#[derive(Debug, Parser)]
#[command(
    name = "compactctl",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 unexpected failure, 2 bad usage or configuration, 3 unreadable input,\n\
                  4 insufficient budget, 5 a check failed, 6 the summarizer failed,\n\
                  7 refused for now (in use elsewhere), 130 interrupted.\n\
                  Example: compactctl compact session.jsonl -o smaller.jsonl"
)]
pub(crate) struct Cli {
    /// The options that every command has.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct GlobalArgs {
    /// Print one JSON document on stdout, and nothing else
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Read this configuration file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    pub config: Option<PathBuf>,
    /// Start from this bundle of policy values; `replay` compares several
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub profile: Vec<Profile>,
    /// Print no report, only errors and requested output
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Colour the report
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub color: Color,
    /// Count tokens this way: o200k, cl100k, heuristic, chars4, or auto to follow the model
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub estimator: Option<String>,
    /// Log events to stderr in this format; RUST_LOG=warn logs fewer
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        help_heading = "Global options"
    )]
    pub log_format: Option<LogFormat>,
    /// Name the session
    #[arg(
        long,
        global = true,
        value_name = "ID",
        help_heading = "Global options"
    )]
    pub session: Option<String>,
}

/// How events are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Sets the choice for stdout and stderr.
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::AlwaysAnsi,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Count a session: format, pressure, tokens by role and category, largest entries, problems
    #[command(after_help = "Example: compactctl inspect session.jsonl --window 200000")]
    Inspect(InspectArgs),
    /// Show what a compaction would do, without changing anything
    #[command(after_help = "Example: compactctl plan session.jsonl --target 0.4")]
    Plan(PlanArgs),
    /// Compact a session: archive the original and write the smaller view
    #[command(
        after_help = "Example: compactctl compact session.jsonl --budget 20000 -o smaller.jsonl"
    )]
    Compact(CompactArgs),
    /// Compare two versions of a session: what is gone, kept and new
    #[command(after_help = "Example: compactctl diff session.jsonl smaller.jsonl --format md")]
    Diff(DiffArgs),
    /// Check a message list or request body for what a provider would refuse
    #[command(after_help = "Example: compactctl validate request.json --provider anthropic")]
    Validate(ValidateArgs),
    /// Convert a session to another format, and report what that format cannot hold
    #[command(
        after_help = "Example: compactctl convert session.jsonl --to openai-chat -o body.json"
    )]
    Convert(ConvertArgs),
    /// Recompute a receipt from the archive
    #[command(after_help = "Example: compactctl verify 3f9a1c22")]
    Verify(VerifyArgs),
    /// Restore an original, byte for byte
    #[command(after_help = "Example: compactctl restore 3f9a1c22 -o session.jsonl")]
    Restore(RestoreArgs),
    /// Search everything archived, in all sessions or in the one that --session names
    #[command(
        after_help = "Example: compactctl recall 3f9a1c22abcd pnpm --filter api dev --latest"
    )]
    Recall(RecallArgs),
    /// Print archived entries: whole, or the lines that you want
    #[command(after_help = "Example: compactctl expand 3f9a1c22abcd#17..19 --grep timeout")]
    Expand(ExpandArgs),
    /// Show what a session remembers now: pinned, ledger, summary, recent
    #[command(after_help = "Example: compactctl remember my-session")]
    Remember(RememberArgs),
    /// List, check, prune and copy the archive of originals
    #[command(after_help = "Example: compactctl archive list")]
    Archive {
        /// The subcommand to run.
        #[command(subcommand)]
        command: ArchiveCommand,
    },
    /// Update or copy the database of receipts
    #[command(after_help = "Example: compactctl catalog copy --from ~/.local/share/compact")]
    Catalog {
        /// The subcommand to run.
        #[command(subcommand)]
        command: CatalogCommand,
    },
    /// Replay recorded sessions under a policy: compactions, pressure, tokens, cost and retention
    #[command(
        after_help = "Example: compactctl replay session.jsonl --window 32000 --profile rolling --profile hard-reset"
    )]
    Replay(ReplayArgs),
    /// Measure retention on transcripts, generated sessions, scripted tasks and questions
    #[command(
        after_help = "Example: compactctl eval sessions/ --budgets 0.05,0.1 --html report.html"
    )]
    #[cfg(feature = "eval")]
    Eval(EvalArgs),
    /// Measure retention (left out of this build)
    #[cfg(not(feature = "eval"))]
    Eval(IgnoredArgs),
    /// Hold one session under the profile hard-reset for another program: commands as lines of JSON on stdin, answers
    /// and events as lines of JSON on stdout
    #[command(after_help = "Example: compactctl reset --session chat-7 --model gpt-4o")]
    Reset(ResetArgs),
    /// Run an agent on a task across as many sessions as it takes: when its context is full, ask for
    /// a checkpoint and continue from it in a fresh session
    #[command(
        after_help = "Example: compactctl run --agent claude --prompt task.md --timeout 4h -- --permission-mode acceptEdits"
    )]
    Run(RunArgs),
    /// Show every session, what each compaction kept and left out, and the way back, as pages for a browser on this
    /// machine
    #[command(after_help = "Example: compactctl dashboard")]
    #[cfg(feature = "dashboard")]
    Dashboard(DashboardArgs),
    /// Show every session as pages for a browser (left out of this build)
    #[cfg(not(feature = "dashboard"))]
    Dashboard(IgnoredArgs),
    /// Listen as an HTTP gateway: agents send their requests to it, it passes them on to their provider, and
    /// compacts histories before they overflow
    #[command(after_help = "Example: compactctl serve &\n         \
                            ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude")]
    #[cfg(feature = "gateway")]
    Serve(ServeArgs),
    /// Listen as an HTTP gateway (left out of this build)
    #[cfg(not(feature = "gateway"))]
    Serve(IgnoredArgs),
    /// Run an agent behind a gateway of its own: for this process only, nothing is installed, and what the agent
    /// answers and exits with is passed through
    #[command(after_help = "Example: compactctl launch claude --continue")]
    #[cfg(feature = "gateway")]
    Launch(LaunchArgs),
    /// Run an agent behind a gateway of its own (left out of this build)
    #[cfg(not(feature = "gateway"))]
    Launch(IgnoredArgs),
    /// Run an MCP server on stdio that offers recall, remember, expand and compact to an agent
    #[command(after_help = "Example: compactctl mcp --session my-session")]
    Mcp,
    /// List models with their windows, prices and tokenizers
    #[command(after_help = "Example: compactctl models claude")]
    Models(ModelsArgs),
    /// Write, check and show the configuration
    #[command(after_help = "Example: compactctl config init")]
    Config {
        /// The subcommand to run.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Archive an agent's transcript before it compacts, tell it what to keep, and afterwards what
    /// was lost. Agents call it with their JSON on stdin and read the answer from stdout
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Example: compactctl hook install --agent claude-code"
    )]
    Hook(HookArgs),
    /// Print one line for a status line: how full the window is, what the next message costs, and when the
    /// cache is cold
    #[command(after_help = "Example: compactctl statusline < what-claude-code-says.json")]
    Statusline(StatuslineArgs),
    /// Show the sessions that something happened in last, drawn again every few seconds until Ctrl-C
    #[command(after_help = "Example: compactctl top --once")]
    Top(TopArgs),
    /// Check this installation: engine, settings, store, permissions and hooks
    #[command(after_help = "Example: compactctl doctor")]
    Doctor,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example: compactctl completions bash > ~/.local/share/bash-completion/completions/compactctl"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_help = "Example: compactctl man | man -l -")]
    Man,
}

/// The transcript, and how it is measured.
#[derive(Args, Debug, Default)]
pub(crate) struct TranscriptArgs {
    /// The session's transcript or request body; - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Read FILE as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub format: Option<Format>,
    /// Which session to use if FILE holds several, counted from 0
    #[arg(long, value_name = "N")]
    pub session_index: Option<usize>,
    /// The model, instead of the one that FILE names
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The model's window in tokens, instead of the registry's
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    /// Use the whole transcript, not only what follows its last compaction
    #[arg(long)]
    pub whole: bool,
}

/// How the gateway is run.
#[cfg(feature = "gateway")]
#[derive(Args, Debug, Default)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one [default: gateway.listen in the configuration]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Also pass requests on to this server, reached by paths that begin with /NAME/
    #[arg(long, value_name = "NAME=URL")]
    pub upstream: Vec<String>,
    /// Make a key for NAME and print it with its line for gateway.keys, instead of listening
    #[arg(long, value_name = "NAME", conflicts_with_all = ["listen", "upstream"])]
    pub new_key: Option<String>,
}

/// Where the dashboard is, and what it may do.
#[cfg(feature = "dashboard")]
#[derive(Args, Debug)]
pub(crate) struct DashboardArgs {
    /// The address to listen on, of this machine alone; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8790")]
    pub listen: std::net::SocketAddr,
    /// Only show: no compacting, undoing or pinning
    #[arg(long)]
    pub read_only: bool,
    /// The model that the chat page talks to, at the server that is configured for summaries; by default a
    /// scripted one, which repeats what it is told
    #[arg(long, value_name = "NAME")]
    pub chat_model: Option<String>,
}

/// How the newest sessions are shown.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Print the list once; so it is where the output is no terminal
    #[arg(long)]
    pub once: bool,
    /// Seconds between two drawings
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_pause)]
    pub seconds: f64,
    /// The most sessions; as many as the terminal has room for by default
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub lines: Option<usize>,
}

/// Reads a pause that a person can follow and a processor bear.
fn parse_pause(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    match (0.1..=3_600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("choose between 0.1 and 3600 seconds".to_owned()),
    }
}

/// How an agent is started behind a gateway.
#[cfg(feature = "gateway")]
#[derive(Args, Debug)]
pub(crate) struct LaunchArgs {
    /// Ask this gateway, which runs already, instead of one that ends with the agent
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,
    /// The agent and its arguments: claude, codex, gemini, opencode, the path of one of them, or any command,
    /// which then gets the variables that providers' SDKs read
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    pub command: Vec<OsString>,
}

#[cfg(feature = "gateway")]
impl ServeArgs {
    /// The keys of the configuration that these arguments set.
    pub(crate) fn config_flags(&self) -> Vec<ConfigFlag> {
        let listen = self.listen.clone();
        let listen = listen.map(|address| ConfigFlag::new("--listen", "gateway.listen", address));
        let upstreams = (!self.upstream.is_empty())
            .then(|| ConfigFlag::new("--upstream", "gateway.upstreams", self.upstream.join(",")));
        listen.into_iter().chain(upstreams).collect()
    }
}

/// How small the view must be.
#[derive(Args, Debug, Default)]
#[group(multiple = false)]
pub(crate) struct BudgetArgs {
    /// The most tokens that the view's history may have
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
    /// The share of the window that the whole context may have, from 0 to 1
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    pub target: Option<f64>,
}

/// How the view is made.
#[derive(Args, Debug, Default)]
pub(crate) struct SummaryArgs {
    /// The style of the summary
    #[arg(long, value_name = "STYLE", value_parser = parse_style)]
    pub style: Option<Style>,
    /// Who writes the summary.
    #[command(flatten)]
    pub writer: SummarizerArgs,
    /// A note for this compaction, passed to the summarizer and kept in the receipt
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// Who writes the summary.
#[derive(Args, Debug, Default)]
pub(crate) struct SummarizerArgs {
    /// Who writes the summary: extractive (the engine itself, without a model), or a model that is
    /// sent the redacted conversation: openai (any compatible server), responses, anthropic,
    /// openai_compaction or anthropic_compaction [default: summarizer.kind in the configuration]
    #[arg(long, value_name = "NAME", hide_possible_values = true)]
    pub summarizer: Option<SummarizerChoice>,
    /// The URL of that model, such as http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub summarizer_url: Option<String>,
    /// The name of that model [default: the session's]
    #[arg(long, value_name = "MODEL")]
    pub summarizer_model: Option<String>,
}

impl SummarizerArgs {
    /// The keys of the configuration that these arguments set.
    pub(crate) fn config_flags(&self) -> Vec<ConfigFlag> {
        let kind = self.summarizer.and_then(|s| s.to_possible_value());
        let kind = kind.map(|value| value.get_name().to_owned());
        let flag = |name: &str, path: &str, value: &Option<String>| {
            value
                .clone()
                .map(|value| ConfigFlag::new(name, path, value))
        };
        [
            flag("--summarizer", "summarizer.kind", &kind),
            flag("--summarizer-url", "summarizer.url", &self.summarizer_url),
            flag(
                "--summarizer-model",
                "summarizer.model",
                &self.summarizer_model,
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Who writes the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SummarizerChoice {
    /// The engine itself: deterministic, no model, no network.
    Extractive,
    /// A chat model of OpenAI, or of any compatible server.
    #[value(name = "openai")]
    OpenAi,
    /// A model behind OpenAI's Responses.
    Responses,
    /// A model behind Anthropic's Messages.
    Anthropic,
    /// OpenAI's own compaction, read out as text.
    #[value(name = "openai_compaction")]
    OpenAiCompaction,
    /// Anthropic's own compaction, on demand.
    AnthropicCompaction,
}

/// `inspect`.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// The transcript.
    #[command(flatten)]
    pub subject: TranscriptArgs,
}

/// `plan`.
#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// The transcript.
    #[command(flatten)]
    pub subject: TranscriptArgs,
    /// The budget.
    #[command(flatten)]
    pub goal: BudgetArgs,
    /// The summary.
    #[command(flatten)]
    pub manner: SummaryArgs,
}

/// `compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// The transcript.
    #[command(flatten)]
    pub subject: TranscriptArgs,
    /// Write the view here, in FILE's own format; - for stdout, or FILE itself. A session that is
    /// within its budget is copied unchanged
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// What becomes of a file that has the output's name.
    #[arg(skip)]
    pub existing: ExistingFile,
    /// Append a boundary and the view to the original lines, so that the agent can resume from it;
    /// in place unless -o is given
    #[arg(long)]
    pub append: bool,
    /// The budget.
    #[command(flatten)]
    pub goal: BudgetArgs,
    /// The summary.
    #[command(flatten)]
    pub manner: SummaryArgs,
}

/// `convert`.
#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The session's transcript or request body; - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub to: Format,
    /// Write to this file; - for stdout [default: -]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Read FILE as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub format: Option<Format>,
    /// Which session to use if FILE holds several, counted from 0
    #[arg(long, value_name = "N")]
    pub session_index: Option<usize>,
    /// Use the whole transcript, not only what follows its last compaction
    #[arg(long)]
    pub whole: bool,
}

/// `diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The earlier version; - for stdin
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The later version
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// The format of the comparison
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: DiffFormat,
}

/// How a comparison is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// For a terminal.
    Text,
    /// Markdown.
    Md,
    /// A self-contained page.
    Html,
    /// One picture: both versions as strips, entry by entry.
    Svg,
}

/// `validate`.
#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// A request body, a JSON list of messages, one message per line, or an agent's transcript; -
    /// for stdin
    #[arg(value_name = "FILE", required_unless_present = "list_rules")]
    pub file: Option<PathBuf>,
    /// The provider: openai-chat, openai-responses, anthropic or gemini
    #[arg(long, value_name = "NAME", required_unless_present = "list_rules", value_parser = parse_provider)]
    pub provider: Option<Provider>,
    /// Which session to use if FILE holds several, counted from 0
    #[arg(long, value_name = "N")]
    pub session_index: Option<usize>,
    /// Also apply the rules of stricter servers with the same protocol: Mistral, chat templates,
    /// Bedrock, Vertex
    #[arg(long)]
    pub strict: bool,
    /// Only list the rules with their sources, of one provider or of all
    #[arg(long, conflicts_with = "file")]
    pub list_rules: bool,
}

/// `verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// A receipt's id (8 characters are enough), or its JSON in a file or - for stdin
    #[arg(value_name = "RECEIPT")]
    pub receipt: String,
}

/// `restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// A receipt's id, or a session's id for everything that it ever held; receipt:ID and session:NAME say which,
    /// history:ID is everything up to a receipt
    #[arg(value_name = "RECEIPT_OR_SESSION")]
    pub name: String,
    /// Write it here instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// `recall`.
#[derive(Args, Debug)]
pub(crate) struct RecallArgs {
    /// A question or a few words, names, paths or flags; no syntax. - for stdin. Before other words, a
    /// receipt stands for its session, and . for the session that was compacted last
    #[arg(value_name = "QUERY", required = true)]
    pub query: Vec<String>,
    /// The maximum number of hits
    #[arg(short = 'n', long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Put the newest hit first, not the best one
    #[arg(long)]
    pub latest: bool,
    /// Only search entries after this number
    #[arg(long, value_name = "N", value_parser = parse_ordinal)]
    pub after: Option<u64>,
    /// Print secrets as they were archived, instead of redacting them; they are not searched for
    #[arg(long)]
    pub unredacted: bool,
}

/// `expand`.
#[derive(Args, Debug)]
pub(crate) struct ExpandArgs {
    /// RECEIPT#NUMBER, as a summary, a cut text or `recall` shows it, RECEIPT#FIRST..LAST, or several.
    /// Without RECEIPT it is the session that --session names, or else the one that was compacted last
    #[arg(value_name = "POINTER", required = true)]
    pub pointer: Vec<String>,
    /// Print the lines that match a pattern, with their numbers and two lines around each
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["lines", "raw"])]
    pub grep: Option<String>,
    /// Print these lines, such as 120..160 or 120..
    #[arg(long, value_name = "LINES", conflicts_with = "raw")]
    pub lines: Option<String>,
    /// Print so many entries before and after as well
    #[arg(
        short = 'C',
        long,
        value_name = "N",
        default_value_t = 0,
        conflicts_with = "raw"
    )]
    pub around: u64,
    /// Print everything, however long it is
    #[arg(long)]
    pub all: bool,
    /// Print secrets as they were archived, instead of redacting them
    #[arg(long)]
    pub unredacted: bool,
    /// Print the entry's JSON as it stood in the transcript; byte for byte with --unredacted
    #[arg(long)]
    pub raw: bool,
    /// Write it here instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
}

/// `remember`.
#[derive(Args, Debug)]
pub(crate) struct RememberArgs {
    /// A session's id, or a receipt's id for what was remembered at that time
    #[arg(value_name = "SESSION")]
    pub name: String,
}

/// `archive`.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// List sessions and their sizes
    #[command(after_help = "Example: compactctl archive list --json")]
    List,
    /// Show a receipt, or the compactions of a session
    #[command(after_help = "Example: compactctl archive show 3f9a1c22")]
    Show {
        /// The id of a receipt or a session
        #[arg(value_name = "RECEIPT_OR_SESSION")]
        name: String,
    },
    /// Read every pack and check it against its name
    #[command(after_help = "Example: compactctl archive verify")]
    Verify,
    /// Rebuild the catalog from the archive
    #[command(after_help = "Example: compactctl archive rebuild")]
    Rebuild,
    /// Add what was archived to the recall index, as happens after each compaction
    #[command(after_help = "Example: compactctl archive index")]
    Index {
        /// Let everything else on this machine go first
        #[arg(long)]
        low_priority: bool,
    },
    /// Remove old originals, but never what a session's latest view points at
    #[command(after_help = "Example: compactctl archive prune --older-than 90 --dry-run")]
    Prune(PruneArgs),
    /// Copy every original and receipt into a folder that is a complete store
    #[command(after_help = "Example: compactctl archive export backup/")]
    Export {
        /// The folder; what it already holds is kept
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Copy every original and receipt from a folder into this store
    #[command(after_help = "Example: compactctl archive import backup/")]
    Import {
        /// A data directory, or what `archive export` wrote
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// `catalog`.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Update the tables and print where they are
    #[command(after_help = "Example: compactctl catalog migrate")]
    Migrate,
    /// Copy receipts from or to another catalog; originals are not copied
    #[command(after_help = "Example: compactctl catalog copy --to postgres://ann@db.example/team")]
    Copy(CatalogCopyArgs),
}

/// `catalog copy`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("other").required(true).args(["from", "to"]))]
pub(crate) struct CatalogCopyArgs {
    /// Copy from this catalog to the configured one: a data directory, or a postgres:// address
    #[arg(long, value_name = "FOLDER|URL")]
    pub from: Option<String>,
    /// Copy from the configured catalog to this one
    #[arg(long, value_name = "FOLDER|URL")]
    pub to: Option<String>,
}

/// `archive prune`. Without a limit, `storage.retention` applies.
#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Remove compactions that are older than this
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u32>,
    /// Remove the oldest until the archive is no larger than this
    #[arg(long, value_name = "BYTES")]
    pub max_bytes: Option<u64>,
    /// List what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
}

/// Whatever is asked of a command that was left out of this build.
#[cfg(not(feature = "eval"))]
#[derive(Args, Debug)]
pub(crate) struct IgnoredArgs {
    /// Not looked at.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

/// `eval`.
#[cfg(feature = "eval")]
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["paths", "generated", "examples", "decay", "tasks", "qa", "probes"]))]
pub(crate) struct EvalArgs {
    /// Folders or files of transcripts; each is a dataset
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Check generated sessions against their answer keys instead
    #[arg(long)]
    pub generated: bool,
    /// Look for the answer keys of the example sessions in windows of their own size instead
    #[arg(long)]
    pub examples: bool,
    /// Compare many successive compactions of generated sessions with one instead
    #[arg(long)]
    pub decay: bool,
    /// Let scripted agents finish their tasks with and without compaction instead
    #[arg(long)]
    pub tasks: bool,
    /// Look for the evidence of questions in compacted conversations (LoCoMo's format) instead
    #[arg(long, value_name = "FILE")]
    pub qa: Option<PathBuf>,
    /// Look for the needles of answers in compacted sessions instead (docs/eval.md has the files)
    #[arg(long, value_name = "DIR")]
    pub probes: Option<PathBuf>,
    /// Where the transcripts of --probes are; the same folder if left out
    #[arg(long, value_name = "DIR", requires = "probes")]
    pub data: Option<PathBuf>,
    /// The number of generated sessions or tasks of each kind
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Budgets as shares of what is compacted [default: 0.05,0.1,0.2; with --probes the recorded sizes]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = parse_ratio)]
    pub budgets: Vec<f64>,
    /// Where sessions are cut, as shares of their tokens
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.5,0.75", value_parser = parse_ratio)]
    pub cuts: Vec<f64>,
    /// The methods to compare: compact, compact_llm (with a model's words), keep_last, head_tail,
    /// trim_tools, entity_ledger, real, oracle, whole (the ceiling)
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "compact,keep_last,trim_tools,entity_ledger,real,oracle"
    )]
    pub methods: Vec<Method>,
    /// Cut where the agents themselves compacted, at the size of their own summaries
    #[arg(long, conflicts_with_all = ["cuts", "budgets"])]
    pub real: bool,
    /// Leave out cuts with a smaller budget, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 400)]
    pub min_budget: usize,
    /// Leave out smaller sessions, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 1500)]
    pub min_tokens: usize,
    /// The fewest digits of a number that counts; 4, or 3 for sets whose name begins with tau
    #[arg(long, value_name = "N")]
    pub min_digits: Option<usize>,
    /// Who writes the summaries of compact_llm.
    #[command(flatten)]
    pub writer: SummarizerArgs,
    /// Further outputs
    #[command(flatten)]
    pub sheets: ResultFileArgs,
}

#[cfg(feature = "eval")]
impl EvalArgs {
    /// Returns the budgets as shares: those that were asked for, or the usual ones.
    pub(crate) fn budget_shares(&self) -> &[f64] {
        match self.budgets.as_slice() {
            [] => &[0.05, 0.1, 0.2],
            budgets => budgets,
        }
    }
}

/// `reset`.
#[derive(Args, Debug)]
pub(crate) struct ResetArgs {
    /// What the session begins with: a file with its instructions, or with all that it had come to
    pub file: Option<PathBuf>,
    /// The model whose window counts
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The window in tokens, instead of the registry's
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
}

impl ResetArgs {
    /// The keys of the configuration that these arguments set.
    pub(crate) fn config_flags(&self) -> Vec<ConfigFlag> {
        let model = self.model.clone();
        let model = model.map(|name| ConfigFlag::new("--model", "model", name));
        let window = self
            .window
            .map(|tokens| ConfigFlag::new("--window", "max_context_tokens", tokens));
        model.into_iter().chain(window).collect()
    }
}

/// `run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The agent: claude, codex, the path of one of them, or any command that speaks the protocol of
    /// docs/run.md
    #[arg(long, value_name = "CMD", required_unless_present = "resume")]
    pub agent: Option<String>,
    /// The file with the task; - for stdin
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub prompt: Option<PathBuf>,
    /// Continue a run that was stopped
    #[arg(long, value_name = "RUN", conflicts_with_all = ["agent", "prompt", "until", "arguments"])]
    pub resume: Option<String>,
    /// The model's window in tokens, instead of the agent's or the registry's
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    /// The share of the window at which a session ends; above 1, only a refusal by the provider ends it
    #[arg(long, value_name = "RATIO", value_parser = parse_threshold)]
    pub threshold: Option<f64>,
    /// How long all sessions together may take: 90s, 45m, 4h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub timeout: Option<Duration>,
    /// The maximum number of sessions after the first
    #[arg(long, value_name = "N")]
    pub max_restarts: Option<u32>,
    /// Continue until an answer of the agent contains this; without it, the first answer ends the run
    #[arg(long, value_name = "TEXT")]
    pub until: Option<String>,
    /// How long to wait for a checkpoint [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub checkpoint_timeout: Option<Duration>,
    /// How long an agent may print nothing [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub max_silence: Option<Duration>,
    /// Further arguments for the agent, in every session
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// `replay`.
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Recorded sessions; - for stdin
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The model's window in tokens, instead of the registry's; several to compare them
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Vec<u64>,
    /// How much of the trigger point a fresh view may fill, instead of policy.target_of_trigger; several to
    /// compare them
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = parse_ratio)]
    pub target: Vec<f64>,
    /// Compare thresholds alone with thresholds and the price of cached prompts (policy.economy)
    #[arg(long)]
    pub economy: bool,
    /// The model, for window and price, instead of the one that FILE names
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Read FILE as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub format: Option<Format>,
    /// Which session to use if FILE holds several, counted from 0
    #[arg(long, value_name = "N")]
    pub session_index: Option<usize>,
    /// Further outputs
    #[command(flatten)]
    pub sheets: ResultFileArgs,
}

/// Results for other programs and for a browser.
#[derive(Args, Debug)]
pub(crate) struct ResultFileArgs {
    /// Write the numbers as CSV; - for stdout
    #[arg(long, value_name = "OUT")]
    pub csv: Option<PathBuf>,
    /// Write a self-contained page with tables and curves; - for stdout
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
}

/// `models`.
#[derive(Args, Debug)]
pub(crate) struct ModelsArgs {
    /// Only models whose name contains this
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a commented configuration file, and trust it
    #[command(after_help = "Example: compactctl config init compact.yaml")]
    Init {
        /// The file to write; - for stdout
        #[arg(value_name = "FILE", default_value = "compact.yaml")]
        file: PathBuf,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Check the configuration in force, or a file as if it were a project's
    #[command(after_help = "Example: compactctl config check compact.yaml")]
    Check {
        /// A file to check as a project's, whether it is trusted or not
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Trust a project's file to set any key, until the file changes
    #[command(after_help = "Example: compactctl config trust compact.yaml")]
    Trust {
        /// The file [default: the one in the working directory]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Withdraw the trust in a project's file
    #[command(after_help = "Example: compactctl config distrust compact.yaml")]
    Distrust {
        /// The file [default: the one in the working directory]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of the configuration
    #[command(after_help = "Example: compactctl config schema > compact.schema.json")]
    Schema,
    /// Print the effective values and where each came from
    #[command(after_help = "Example: compactctl config show --profile hard-reset")]
    Show,
}

/// `hook`.
#[derive(Args, Debug)]
pub(crate) struct HookArgs {
    /// The agent that calls [default: detected from its input]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// What to do with the agent's settings.
    #[command(subcommand)]
    pub command: Option<HookCommand>,
}

/// What to do with an agent's settings.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Add the hooks to the agent's settings, and keep everything else in them
    #[command(after_help = "Example: compactctl hook install --agent claude-code --dry-run")]
    Install(HookInstallArgs),
    /// Remove the hooks from the agent's settings
    #[command(after_help = "Example: compactctl hook uninstall --agent claude-code")]
    Uninstall(HookSettingsArgs),
    /// Answer a plugin that asks what takes the place of a conversation
    #[command(
        hide = true,
        after_help = "Example: compactctl hook view --agent claude-code < event.json"
    )]
    View(HookViewArgs),
    /// Show where hooks are installed, and whether the agents compact automatically
    #[command(after_help = "Example: compactctl hook status")]
    Status {
        /// Only this agent: claude-code, codex, gemini-cli or opencode
        #[arg(long, value_name = "NAME")]
        agent: Option<HookAgent>,
    },
}

/// `hook install`.
#[derive(Args, Debug)]
pub(crate) struct HookInstallArgs {
    /// Whose settings.
    #[command(flatten)]
    pub place: HookSettingsArgs,
    /// Also add a plugin that gives Claude Code Compact's view in place of its own summary, without a
    /// model. Uses an interface of Claude Code that is in early access
    #[arg(long)]
    pub replace_summary: bool,
}

/// `hook view`.
#[derive(Args, Debug)]
pub(crate) struct HookViewArgs {
    /// The agent whose plugin asks
    #[arg(long, value_name = "NAME")]
    pub agent: HookAgent,
}

/// Whose settings, and which.
#[derive(Args, Debug)]
pub(crate) struct HookSettingsArgs {
    /// The agent: claude-code, codex, gemini-cli or opencode
    #[arg(long, value_name = "NAME")]
    pub agent: HookAgent,
    /// The user's settings, or those of the project in the current directory
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub scope: HookScope,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Whose settings are edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookScope {
    /// The user's.
    User,
    /// Those of the project in the current directory.
    Project,
}

/// `statusline`.
#[derive(Args, Debug)]
pub(crate) struct StatuslineArgs {
    /// A transcript of Claude Code [default: the one that stdin names, or the newest of this directory]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

fn parse_format(name: &str) -> Result<Format, String> {
    name.parse()
        .map_err(|error: compact::format::FormatError| error.to_string())
}

fn parse_provider(name: &str) -> Result<Provider, String> {
    name.parse()
        .map_err(|error: compact::format::validate::UnknownProvider| error.to_string())
}

/// Reads an entry's number, with or without its sign.
fn parse_ordinal(text: &str) -> Result<u64, String> {
    let number = text.rsplit_once('#').map_or(text, |(_, number)| number);
    let number = number.parse::<u64>();
    number.map_err(|_| "expected the number of an entry, such as 188".to_owned())
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio <= 1.0 => Ok(ratio),
        _ => Err("expected a number above 0 and up to 1, such as 0.4".to_owned()),
    }
}

fn parse_threshold(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err("expected a number above 0, such as 0.9".to_owned()),
    }
}

/// Parses a time with its unit; a bare number is in seconds.
fn parse_time(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text
        .split_at_checked(split.unwrap_or(text.len()))
        .unwrap_or((text, ""));
    let seconds = match unit {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => f64::NAN,
    };
    let time = number.parse::<f64>().map(|number| number * seconds);
    match time.map(Duration::try_from_secs_f64) {
        Ok(Ok(time)) if !time.is_zero() => Ok(time),
        _ => Err("expected a time such as 90s, 45m or 4h".to_owned()),
    }
}

/// Parses a style as the configuration names it, with hyphens or underscores.
fn parse_style(name: &str) -> Result<Style, String> {
    let name = serde_json::Value::from(name.replace('-', "_"));
    serde_json::from_value(name).map_err(|error| {
        let text = error.to_string();
        text.split_once(", ")
            .map_or(text.clone(), |(_, known)| known.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &clap::Command) {
            for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
                let help = sub.get_after_help().map(ToString::to_string);
                assert!(
                    help.is_some_and(|h| h.starts_with("Example: compactctl ")),
                    "{} has no example",
                    sub.get_name()
                );
                check(sub);
            }
        }
        check(&Cli::command());
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| parse_time(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("90"), Ok(90.0));
        assert_eq!(seconds("1.5s"), Ok(1.5));
        assert_eq!(seconds("45m"), Ok(2_700.0));
        assert_eq!(seconds("2h"), Ok(7_200.0));
        for odd in ["", "h", "0", "-3s", "3w", "3 h", "inf", "1e400"] {
            assert!(parse_time(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn styles_are_named_as_in_the_configuration() {
        assert_eq!(parse_style("code-delta"), Ok(Style::CodeDelta));
        assert_eq!(parse_style("task_state"), Ok(Style::TaskState));
        assert!(parse_style("poem").is_err_and(|e| e.contains("`brief`")));
    }
}
