//! `serve`: the HTTP gateway, until it is told to stop.
//!
//! The gateway itself is the crate `compact-gateway`; this opens the engine, listens, and lets answers that
//! were begun end when a signal comes. Another signal makes it read its settings again.

use std::io::IsTerminal;
use std::sync::Arc;

use axum::Router;
#[cfg(feature = "dashboard")]
use axum::extract::{Request, State};
#[cfg(feature = "dashboard")]
use axum::http::{StatusCode, header::WWW_AUTHENTICATE};
#[cfg(feature = "dashboard")]
use axum::middleware::{Next, from_fn_with_state};
#[cfg(feature = "dashboard")]
use axum::response::{IntoResponse, Response};
use compact::Compact;
use compact::store::{ArchiveError, PackId};
use compact_gateway::{Gateway, GatewaySettings, ServeError, SettingsError};
use serde_json::json;

use crate::answer::CommandAnswer;
use crate::app::{App, config_sources};
use crate::args::{GlobalArgs, ServeArgs};
use crate::failure::{Failure, FailureCode};
use crate::output;
use crate::report::text::printable;
use crate::stop::{Hangup, StopRequest};

/// Serves, or makes a key.
pub(super) fn run(
    args: &ServeArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    if let Some(name) = &args.new_key {
        return make_key(name);
    }
    let config = app.compact().config();
    let settings =
        GatewaySettings::from_config(&config.gateway).map_err(|e| describe_bad_settings(&e))?;
    let gateway =
        Gateway::new(app.compact().clone(), settings).map_err(|e| describe_bad_settings(&e))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error).with_context("cannot start")
        })?;
    let reload = || read_settings(args, global);
    let compact = app.compact();
    runtime.block_on(serve(&Arc::new(gateway), compact, &reload, global))
}

/// Reads the configuration as it is now.
fn read_settings(args: &ServeArgs, global: &GlobalArgs) -> Result<GatewaySettings, Failure> {
    let profile = global.profile.first().copied();
    let sources = config_sources(global, profile).with_flags(args.config_flags());
    let config = sources.load()?.config.gateway;
    GatewaySettings::from_config(&config).map_err(|error| describe_bad_settings(&error))
}

/// Returns the gateway with the dashboard's pages beside it, and what ends those.
#[cfg(feature = "dashboard")]
fn pages_and_gateway(
    gateway: &Arc<Gateway>,
    compact: &Compact,
    global: &GlobalArgs,
) -> Result<(Router, ClosablePages), Failure> {
    use super::dashboard::{add_chat, open_dashboard};
    use compact_dashboard::{ActionMode, HostRule};
    // A gateway without keys listens on this machine alone.
    let hosts = match compact.config().gateway.keys.is_empty() {
        true => HostRule::Loopback,
        false => HostRule::Any,
    };
    let pages = open_dashboard(compact, "/dashboard", ActionMode::Allowed, hosts)?;
    let pages = Arc::new(add_chat(pages, global, None)?);
    let guarded = from_fn_with_state(Arc::clone(gateway), admit_viewer);
    let service = compact_dashboard::router(Arc::clone(&pages)).layer(guarded);
    let router = compact_gateway::router(Arc::clone(gateway)).merge(service);
    Ok((router, ClosablePages(pages)))
}

/// Pages that are kept up to date until they are closed.
#[cfg(feature = "dashboard")]
struct ClosablePages(Arc<compact_dashboard::Dashboard>);

#[cfg(feature = "dashboard")]
impl ClosablePages {
    fn close(&self) {
        self.0.close();
    }
}

/// Lets in whom the gateway lets in, to see their own sessions.
#[cfg(feature = "dashboard")]
async fn admit_viewer(
    State(gateway): State<Arc<Gateway>>,
    mut request: Request,
    next: Next,
) -> Response {
    match gateway.admit_browser(request.headers()) {
        Ok(scope) => {
            request
                .extensions_mut()
                .insert(compact_dashboard::Viewer { scope });
            next.run(request).await
        }
        Err(refusal) => {
            // A browser asks its user for a key where one would help.
            let ask = (refusal.status == StatusCode::UNAUTHORIZED).then_some([(
                WWW_AUTHENTICATE,
                "Basic realm=\"Compact\", charset=\"UTF-8\"",
            )]);
            let reason = format!("{}\n", refusal.reason);
            (refusal.status, ask, reason).into_response()
        }
    }
}

/// Returns the gateway alone.
#[cfg(not(feature = "dashboard"))]
fn pages_and_gateway(
    gateway: &Arc<Gateway>,
    _compact: &Compact,
    _global: &GlobalArgs,
) -> Result<(Router, ClosablePages), Failure> {
    let router = compact_gateway::router(Arc::clone(gateway));
    Ok((router, ClosablePages))
}

/// Nothing to close.
#[cfg(not(feature = "dashboard"))]
struct ClosablePages;

#[cfg(not(feature = "dashboard"))]
impl ClosablePages {
    fn close(&self) {}
}

async fn serve(
    gateway: &Arc<Gateway>,
    compact: &Compact,
    reload: &dyn Fn() -> Result<GatewaySettings, Failure>,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    let stop = StopRequest::listen(Hangup::IsForOthers)?;
    let mut hangups = Hangups::listen()?;
    let listener = compact_gateway::listen(gateway).await;
    let listener = listener.map_err(|error| cannot_listen(&error))?;
    let address = listener.local_addr().map_err(|error| {
        Failure::from_error(FailureCode::Unexpected, &error).with_context("cannot listen")
    })?;
    announce(&address.to_string(), global);
    tokio::spawn(warn_of_store(compact.clone()));
    let mut asked = stop.watch();
    let stopped = async move {
        let _ = asked.wait_for(|asked| *asked).await;
    };
    let (router, dashboard) = pages_and_gateway(gateway, compact, global)?;
    let stopped = async move {
        stopped.await;
        dashboard.close();
    };
    let served = compact_gateway::serve(gateway, listener, router, stopped);
    let had_terminal = std::io::stderr().is_terminal();
    let reloaded = async {
        hangups.next().await;
        // A terminal that was closed takes with it what runs in it.
        while !had_terminal || std::io::stderr().is_terminal() {
            replace_settings(gateway, reload(), global);
            hangups.next().await;
        }
    };
    let cut = tokio::select! {
        cut = served => cut,
        () = reloaded => 0,
    };
    let human = match cut {
        0 => String::new(),
        cut => format!("{cut} answers were cut off\n"),
    };
    Ok(CommandAnswer::new(json!({"cut_off": cut}), human))
}

/// Says so if the store cannot be used: requests pass without it, and nobody would see why none is compacted.
async fn warn_of_store(compact: Compact) {
    let Err(error) = try_store(&compact).await else {
        return;
    };
    let failure = Failure::from(error);
    let help = failure.advice();
    let help = help.map_or_else(String::new, |help| format!("help: {}\n", printable(help)));
    output::print_stderr(&format!(
        "warning: the store cannot be used, so requests go out as they came: {}\n{help}",
        printable(failure.message())
    ));
}

/// Asks the store for what nobody has put there.
async fn try_store(compact: &Compact) -> Result<(), compact::Error> {
    if !compact.has_store() {
        return Ok(());
    }
    let store = compact.store_as_is()?;
    store.catalog.latest_record("").await?;
    match store.archive.info(&PackId([0; 32])).await {
        Ok(_) | Err(ArchiveError::Missing { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Uses settings that were read again; those that are wrong are named, and change nothing.
fn replace_settings(
    gateway: &Gateway,
    read: Result<GatewaySettings, Failure>,
    global: &GlobalArgs,
) {
    match read {
        Ok(settings) => {
            gateway.replace_settings(settings);
            if !global.quiet {
                output::print_stderr("settings were read again\n");
            }
        }
        Err(failure) => {
            output::print_stderr("settings were not changed:\n");
            failure.show(false);
        }
    }
}

/// The wish that settings are read again.
#[cfg(unix)]
struct Hangups(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangups {
    fn listen() -> Result<Hangups, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = signal(SignalKind::hangup());
        signals.map(Hangups).map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error)
                .with_context("cannot catch signals")
        })
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn listen() -> Result<Hangups, Failure> {
        Ok(Hangups)
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}

/// Says where it listens: programs that start it wait for the line.
fn announce(address: &str, global: &GlobalArgs) {
    if !global.quiet {
        output::print_stderr(&format!("listening on http://{address}\n"));
    }
}

fn make_key(name: &str) -> Result<CommandAnswer, Failure> {
    compact_gateway::check_key_name(name).map_err(|error| {
        Failure::from_error(FailureCode::Usage, &error).help("choose another name, such as `alice`")
    })?;
    let no_randomness =
        || Failure::new(FailureCode::Unexpected, "the system gives no random bytes");
    let made = compact_gateway::make_key(name).ok_or_else(no_randomness)?;
    let human = format!(
        "key (shown once):  {}\nin gateway.keys:   {}\n",
        made.key,
        printable(&made.setting)
    );
    let json = json!({"key": made.key, "setting": made.setting});
    Ok(CommandAnswer::new(json, human))
}

/// Says what is wrong with the settings of a gateway.
pub(super) fn describe_bad_settings(error: &SettingsError) -> Failure {
    let hint = match error {
        SettingsError::Open(_) => {
            "make a key with `compactctl serve --new-key NAME` and put its line into gateway.keys"
        }
        _ => "mend the setting that the message names",
    };
    Failure::from_error(FailureCode::Usage, error).help(hint)
}

fn cannot_listen(error: &ServeError) -> Failure {
    Failure::from_error(FailureCode::Unexpected, error)
        .help("choose another address with --listen, or stop what listens there")
}
