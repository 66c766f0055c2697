//! `serve`: the HTTP gateway, until it is told to stop.
//!
//! The gateway itself is the crate `compact-gateway`; this opens the engine, listens, and lets answers that
//! were begun end when a signal comes. Another signal makes it read its settings again.

use std::io::IsTerminal;
use std::sync::Arc;

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
    runtime.block_on(serve(&Arc::new(gateway), &reload, global))
}

/// Reads the configuration as it is now.
fn read_settings(args: &ServeArgs, global: &GlobalArgs) -> Result<GatewaySettings, Failure> {
    let profile = global.profile.first().copied();
    let sources = config_sources(global, profile).with_flags(args.config_flags());
    let config = sources.load()?.config.gateway;
    GatewaySettings::from_config(&config).map_err(|error| describe_bad_settings(&error))
}

async fn serve(
    gateway: &Arc<Gateway>,
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
    let mut asked = stop.watch();
    let stopped = async move {
        let _ = asked.wait_for(|asked| *asked).await;
    };
    let router = compact_gateway::router(Arc::clone(gateway));
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
