//! `launch`: an agent behind a gateway that lives as long as it does.
//!
//! Nothing is installed and no file is written: the agent gets variables or arguments that lead it to a gateway in
//! this process, and the gateway passes its requests on to the server that it would have asked. Output,
//! signals and the exit code are the agent's.

mod agent;
mod codex;
mod opencode;
mod process;

use std::io::IsTerminal;
use std::sync::Arc;

use compact::config::GatewayConfig;
use compact_gateway::{Gateway, GatewaySettings};
use serde_json::Value;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{GlobalArgs, LaunchArgs};
use crate::command::serve;
use crate::failure::{Failure, FailureCode};
use crate::output;
use agent::{AgentCommand, UpstreamWish};
use process::AgentProcess;

/// Starts the agent, and ends with it.
pub(super) fn run(args: &LaunchArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    if global.json {
        return Err(Failure::usage(
            "launch has no --json: what it prints is the agent's",
            "put options of the agent behind its name",
        ));
    }
    let command = AgentCommand::from_words(&args.command)?;
    let code = match &args.gateway {
        Some(url) => {
            let settings = command.settings_for(url.trim_end_matches('/'), &[])?;
            open_runtime()?
                .block_on(async { AgentProcess::start(&command, &settings)?.wait().await })?
        }
        None => run_behind_gateway(&command, global)?,
    };
    Ok(CommandAnswer::new(Value::Null, String::new()).with_code(code))
}

/// Runs the agent with a gateway in this process.
fn run_behind_gateway(command: &AgentCommand, global: &GlobalArgs) -> Result<u8, Failure> {
    // The screen is the agent's: events go where the configuration sends them, and not here.
    let silent = GlobalArgs {
        quiet: true,
        ..global.clone()
    };
    let app = App::load_with_flags(&silent, Vec::new())?;
    let wishes = command.upstream_wishes()?;
    let config = gateway_config(&app.compact().config().gateway, &wishes);
    let settings = GatewaySettings::from_config(&config);
    let settings = settings.map_err(|error| serve::describe_bad_settings(&error))?;
    let gateway = Gateway::new(app.compact().clone(), settings);
    let gateway = Arc::new(gateway.map_err(|error| serve::describe_bad_settings(&error))?);
    let code = open_runtime()?.block_on(serve_agent(&gateway, command, &wishes))?;
    if gateway.request_count() == 0 && !global.quiet && std::io::stderr().is_terminal() {
        output::print_stderr("compactctl: the agent sent nothing through the gateway\n");
    }
    Ok(code)
}

/// Listens for as long as the agent runs.
async fn serve_agent(
    gateway: &Arc<Gateway>,
    command: &AgentCommand,
    wishes: &[UpstreamWish],
) -> Result<u8, Failure> {
    let listener = compact_gateway::listen(gateway).await;
    let listener = listener.map_err(|error| cannot_start(&error))?;
    let address = listener
        .local_addr()
        .map_err(|error| cannot_start(&error))?;
    let no_randomness =
        || Failure::new(FailureCode::Unexpected, "the system gives no random bytes");
    let path = compact_gateway::make_private_path().ok_or_else(no_randomness)?;
    let router = compact_gateway::router_below(&path, Arc::clone(gateway));
    let settings = command.settings_for(&format!("http://{address}{path}"), wishes)?;
    let mut process = AgentProcess::start(command, &settings)?;
    let served = compact_gateway::serve(gateway, listener, router, std::future::pending());
    tokio::select! {
        code = process.wait() => code,
        _ = served => Err(Failure::new(FailureCode::Unexpected, "the gateway stopped")),
    }
}

fn open_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .enable_all()
        .build()
        .map_err(|error| cannot_start(&error))
}

/// Returns the settings of a gateway for one agent: on an address of its own, before the servers that the agent
/// would ask.
fn gateway_config(configured: &GatewayConfig, wishes: &[UpstreamWish]) -> GatewayConfig {
    let mut config = GatewayConfig {
        listen: "127.0.0.1:0".to_owned(),
        // Its address is known to the agent alone.
        keys: Vec::new(),
        ..configured.clone()
    };
    for wish in wishes {
        match wish {
            UpstreamWish::Anthropic(url) => config.anthropic_url.clone_from(url),
            UpstreamWish::OpenAi(url) => config.openai_url.clone_from(url),
            UpstreamWish::Gemini(url) => config.gemini_url.clone_from(url),
            UpstreamWish::Named { name, url, .. } => config.upstreams.push(format!("{name}={url}")),
        }
    }
    config
}

fn cannot_start(error: &dyn std::error::Error) -> Failure {
    Failure::from_error(FailureCode::Unexpected, error).with_context("cannot start the gateway")
}
