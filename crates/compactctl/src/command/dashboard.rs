//! `dashboard`: pages about every session, for a browser on this machine, until it is told to stop.
//!
//! The pages are the crate `compact-dashboard`; `serve` has the same ones behind its keys.

use std::sync::Arc;

use compact::Compact;
use compact::policy::Profile;
use compact_dashboard::{ActionMode, Dashboard, HostRule};
use serde_json::json;
use tokio::net::TcpListener;

use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{DashboardArgs, GlobalArgs};
use crate::failure::{Failure, FailureCode};
use crate::output;
use crate::stop::{Hangup, StopRequest};

/// Serves the pages.
pub(super) fn run(
    args: &DashboardArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    if !args.listen.ip().is_loopback() {
        return Err(Failure::usage(
            format!("{} can be reached from other machines", args.listen),
            "listen on 127.0.0.1, or use `compactctl serve` with gateway.keys, which has the same pages below /dashboard",
        ));
    }
    let actions = match args.read_only {
        true => ActionMode::ReadOnly,
        false => ActionMode::Allowed,
    };
    let dashboard = open_dashboard(app.compact(), "", actions, HostRule::Loopback)?;
    let dashboard = add_chat(dashboard, global, args.chat_model.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot("start", &error))?;
    runtime.block_on(serve(Arc::new(dashboard), args, global))
}

/// Makes the dashboard over an engine.
pub(super) fn open_dashboard(
    compact: &Compact,
    base: &str,
    actions: ActionMode,
    hosts: HostRule,
) -> Result<Dashboard, Failure> {
    let made = Dashboard::new(compact.clone(), base, actions, hosts);
    made.ok_or_else(|| Failure::new(FailureCode::Unexpected, "the system gives no random bytes"))
}

/// Adds the page to talk in. Its sessions are reset; those that are shown were compacted by whatever profile.
pub(super) fn add_chat(
    dashboard: Dashboard,
    global: &GlobalArgs,
    model: Option<&str>,
) -> Result<Dashboard, Failure> {
    let resets = App::load_with_profile(global, Some(Profile::HardReset))?;
    let resets = resets.compact();
    let model = match model {
        None => None,
        Some(name) => Some(resets.chat_model(name)?.ok_or_else(|| {
            Failure::usage(
                format!("no server is configured that has {name}"),
                "set summarizer.kind and summarizer.url: the chat talks to a model of that server",
            )
        })?),
    };
    Ok(dashboard.with_chat(resets.clone(), model))
}

async fn serve(
    dashboard: Arc<Dashboard>,
    args: &DashboardArgs,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let stop = StopRequest::listen(Hangup::Stops)?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        cannot("listen", &error)
            .help("choose another address with --listen, or stop what listens there")
    })?;
    let address = listener.local_addr();
    let address = address.map_err(|error| cannot("listen", &error))?;
    if !global.quiet {
        output::print_stderr(&format!("the dashboard is at http://{address}/\n"));
    }
    let mut asked = stop.watch();
    let stopped = async move {
        let _ = asked.wait_for(|asked| *asked).await;
    };
    let served = compact_dashboard::serve(dashboard, listener, stopped).await;
    served.map_err(|error| cannot("serve", &error))?;
    Ok(CommandAnswer::new(json!({}), String::new()))
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::from_error(FailureCode::Unexpected, error).with_context(&format!("cannot {what}"))
}
