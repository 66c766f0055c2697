//! `mcp`: the archive as tools for an agent, over the Model Context Protocol on stdio.
//!
//! Each tool is the command of the same name: this module translates arguments, bounds what comes
//! back and quotes it. Nothing but the protocol goes to stdout. The server ends when stdin does.

mod compact;
mod expand;
mod page;
mod place;
mod recall;
mod relay;
mod remember;
#[cfg(test)]
mod tests;
mod tool;

use std::io::IsTerminal;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use tokio::sync::{Semaphore, watch};

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::GlobalArgs;
use crate::failure::{Failure, FailureCode};
use crate::output;
use tool::{TOOLS, ToolEntry};

/// Calls that are worked on at a time; others wait.
const AT_ONCE: usize = 4;

const INSTRUCTIONS: &str = include_str!("../../../templates/mcp/instructions.md");

/// Serves until stdin closes.
pub(super) fn run(app: App, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    if global.json {
        return Err(Failure::usage(
            "mcp and --json both write to stdout",
            "leave --json out: all that mcp prints is JSON",
        ));
    }
    if std::io::stdin().is_terminal() && !global.quiet {
        output::print_stderr("an agent starts this and speaks MCP with it on stdin; ^D ends it\n");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error).with_context("cannot start")
        })?;
    let served = runtime.block_on(serve(McpServer::new(app, global)));
    // Work whose client is gone is not waited for.
    runtime.shutdown_background();
    served.map(|()| CommandAnswer::default())
}

async fn serve(server: McpServer) -> Result<(), Failure> {
    let broken = |error: &dyn std::error::Error| {
        Failure::from_error(FailureCode::Unexpected, error)
            .with_context("the client does not speak MCP as expected")
            .help("start it from an agent's MCP settings")
    };
    let stdio = relay::relay_stdio();
    let served = match server.serve((stdio.requests, stdio.answers)).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|e| broken(&e)),
        // One that leaves without a word only looked whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(broken(&error)),
    };
    // The last answer is out before the program ends; that nobody reads it any more is no failure.
    let _ = stdio.writer.await;
    served
}

/// What the protocol's requests are answered from.
struct McpServer {
    app: App,
    global: GlobalArgs,
    places: Arc<Semaphore>,
}

impl McpServer {
    fn new(app: App, global: &GlobalArgs) -> McpServer {
        McpServer {
            app,
            global: global.clone(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Runs a tool beside the protocol's own loop, for as long as `asker` has another end.
    async fn run_tool(
        &self,
        offer: ToolEntry,
        arguments: JsonObject,
        asker: watch::Receiver<()>,
    ) -> CallToolResult {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let app = self.app.with_cancellation(asker);
        let global = self.global.clone();
        let worked = tokio::task::spawn_blocking(move || {
            let _place = place;
            let answered = (offer.call)(arguments, &app, &global);
            answered.map_err(|failure| app.explain_failure(failure))
        });
        let failure = match worked.await {
            Ok(Ok(result)) => return result,
            Ok(Err(failure)) => failure,
            Err(error) => Failure::from_error(FailureCode::Unexpected, &error),
        };
        if !self.global.quiet {
            output::print_stderr(&format!("{}: {}\n", offer.name, failure.message()));
        }
        tool::failure_result(&failure)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("compactctl", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(|offer| (offer.describe)()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offer = TOOLS.iter().find(|offer| offer.name == request.name);
        let Some(offer) = offer else {
            let names: Vec<&str> = TOOLS.iter().map(|offer| offer.name).collect();
            let message = format!("no such tool; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let (_waiting, asker) = watch::channel(());
        let work = self.run_tool(*offer, request.arguments.unwrap_or_default(), asker);
        tokio::select! {
            result = work => Ok(result.into()),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}
