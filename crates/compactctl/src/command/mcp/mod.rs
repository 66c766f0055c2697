//! `mcp`: the archive as tools for an agent, over the Model Context Protocol on stdio.
//!
//! Each tool is the command of the same name: this module translates arguments, bounds what comes
//! back and quotes it. Nothing but the protocol goes to stdout. The server ends when stdin does.

mod compact;
mod expand;
mod page;
mod recall;
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

use crate::answer::Answer;
use crate::args::Global;
use crate::failure::{Code, Failure};
use crate::output;
use crate::world::World;
use tool::{OFFERS, Offer};

/// Calls that are worked on at a time; others wait.
const AT_ONCE: usize = 4;

const INSTRUCTIONS: &str = include_str!("../../../templates/mcp/instructions.md");

/// Serves until stdin closes.
pub fn run(world: World, global: &Global) -> Result<Answer, Failure> {
    if global.json {
        return Err(Failure::usage(
            "mcp and --json both want stdout",
            "leave --json out: all that mcp prints is JSON",
        ));
    }
    if std::io::stdin().is_terminal() && !global.quiet {
        output::aside("an agent starts this and speaks MCP with it on stdin; ^D ends it\n");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of(Code::Unexpected, &error).about("cannot start"))?;
    let served = runtime.block_on(serve(Server::new(world, global)));
    // Work whose client is gone is not waited for.
    runtime.shutdown_background();
    served.map(|()| Answer::default())
}

async fn serve(server: Server) -> Result<(), Failure> {
    let broken = |error: &dyn std::error::Error| {
        Failure::of(Code::Unexpected, error)
            .about("the client does not speak MCP as expected")
            .help("start it from an agent's MCP settings")
    };
    match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|e| broken(&e)),
        // One that leaves without a word only looked whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(broken(&error)),
    }
}

/// What the protocol's requests are answered from.
struct Server {
    world: World,
    global: Global,
    places: Arc<Semaphore>,
}

impl Server {
    fn new(world: World, global: &Global) -> Server {
        Server {
            world,
            global: global.clone(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Runs a tool beside the protocol's own loop, for as long as `asker` has another end.
    async fn work(
        &self,
        offer: Offer,
        arguments: JsonObject,
        asker: watch::Receiver<()>,
    ) -> CallToolResult {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let world = self.world.asked_by(asker);
        let global = self.global.clone();
        let worked = tokio::task::spawn_blocking(move || {
            let _place = place;
            (offer.call)(arguments, &world, &global)
        });
        let failure = match worked.await {
            Ok(Ok(result)) => return result,
            Ok(Err(failure)) => failure,
            Err(error) => Failure::of(Code::Unexpected, &error),
        };
        if !self.global.quiet {
            output::aside(&format!("{}: {}\n", offer.name, failure.message()));
        }
        tool::refused(&failure)
    }
}

impl ServerHandler for Server {
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
        let tools = OFFERS.iter().map(|offer| (offer.describe)()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offer = OFFERS.iter().find(|offer| offer.name == request.name);
        let Some(offer) = offer else {
            let names: Vec<&str> = OFFERS.iter().map(|offer| offer.name).collect();
            let message = format!("no such tool; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let (_waiting, asker) = watch::channel(());
        let work = self.work(*offer, request.arguments.unwrap_or_default(), asker);
        tokio::select! {
            result = work => Ok(result.into()),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}
