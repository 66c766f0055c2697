//! What is measured, as its users would start it: ours, two that only pass bytes on, and other gateways for models. Each is one
//! process tree on one core. Portkey's gateway is left out: on Node 20 it answers every stream with an error (`immutable`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::load::LoadTarget;
use crate::environment::{PipRequirements, PythonEnvironment, list_file};
use crate::shell::{self, Console};
use crate::storage::{ServerProcess, free_port, wait_for};

const LITELLM_PROXY: PythonEnvironment = PythonEnvironment {
    name: "gateway-litellm",
    lists: &[PipRequirements {
        files: &[list_file!("tests/gateways/litellm.txt")],
        flags: &[],
    }],
};

const HEADROOM_PROXY: PythonEnvironment = PythonEnvironment {
    name: "gateway-headroom",
    lists: &[PipRequirements {
        files: &[list_file!("tests/gateways/headroom.txt")],
        flags: &[],
    }],
};

/// The core that gateways run on; the load and the upstream have the first.
const CORE: &str = "1";

/// What a gateway does with what passes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyKind {
    /// Nothing is between client and upstream.
    Direct,
    /// Bytes are passed on.
    Plain,
    /// This project's.
    Ours,
    /// Another that reads what it passes on.
    Peer,
}

/// A gateway that runs; it ends when this is dropped.
pub(super) struct RunningProxy {
    pub(super) name: &'static str,
    pub(super) kind: ProxyKind,
    pub(super) target: LoadTarget,
    process: Option<ServerProcess>,
}

/// Where gateways keep what they write, and where they pass requests on to.
pub(super) struct ProxyPlace {
    pub(super) folder: PathBuf,
    pub(super) upstream: u16,
    /// The command that is measured.
    pub(super) command: PathBuf,
}

/// How one is started.
struct ProxyLaunch {
    name: &'static str,
    kind: ProxyKind,
    program: String,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
    port: u16,
}

/// Gets what is missing.
pub(super) fn install_proxies(console: &Console) -> Result<()> {
    for (program, package) in [("nginx", "nginx-light"), ("haproxy", "haproxy")] {
        if !shell::run_succeeds(program, &["-v"]) && shell::is_root() {
            shell::install_debian_packages(console, &[package])?;
        }
    }
    LITELLM_PROXY.install_missing()?;
    HEADROOM_PROXY.install_missing()
}

/// Starts all of them; the first is none.
pub(super) fn start_proxies(place: &ProxyPlace) -> Result<Vec<RunningProxy>> {
    let mut running = vec![RunningProxy {
        name: "direct",
        kind: ProxyKind::Direct,
        target: LoadTarget {
            port: place.upstream,
            path: CHAT,
            headers: String::new(),
        },
        process: None,
    }];
    let launches = [
        launch_nginx(place)?,
        launch_haproxy(place)?,
        launch_ours(place)?,
        launch_litellm(place)?,
        launch_headroom(place)?,
    ];
    for launch in launches {
        running.push(launch.start(&place.folder)?);
    }
    // They start side by side: some import for a minute.
    for proxy in &running {
        let started = wait_for(proxy.target.port);
        started.with_context(|| format!("{} did not start", proxy.name))?;
    }
    Ok(running)
}

const CHAT: &str = "/v1/chat/completions";

impl ProxyLaunch {
    fn new(name: &'static str, kind: ProxyKind, program: impl Into<String>) -> Result<ProxyLaunch> {
        Ok(ProxyLaunch {
            name,
            kind,
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            port: free_port()?,
        })
    }

    fn with_arguments(mut self, arguments: &[&str]) -> ProxyLaunch {
        let port = self.port.to_string();
        let arguments = arguments.iter().map(|text| text.replace("PORT", &port));
        self.arguments = arguments.collect();
        self
    }

    fn start(self, folder: &Path) -> Result<RunningProxy> {
        let log = fs::File::create(folder.join(format!("{}.log", self.name)))?;
        let mut command = Command::new("taskset");
        command.args(["-c", CORE, &self.program]);
        command.args(&self.arguments).current_dir(folder);
        command.envs(self.variables).env("HOME", folder);
        command.stdin(Stdio::null()).stdout(log.try_clone()?);
        let child = command.stderr(log).spawn();
        let child = child.with_context(|| format!("could not start {}", self.name))?;
        let process = ServerProcess {
            child,
            data: None,
            farewell: Some("-TERM"),
        };
        Ok(RunningProxy {
            name: self.name,
            kind: self.kind,
            target: LoadTarget {
                port: self.port,
                path: CHAT,
                headers: String::new(),
            },
            process: Some(process),
        })
    }
}

fn launch_nginx(place: &ProxyPlace) -> Result<ProxyLaunch> {
    let launch = ProxyLaunch::new("nginx", ProxyKind::Plain, "nginx")?;
    let folder = place.folder.join("nginx");
    fs::create_dir_all(&folder)?;
    let root = folder.display();
    let (port, upstream) = (launch.port, place.upstream);
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {root}/{name};\n"))
        .concat();
    let settings = format!(
        "worker_processes 1;\npid {root}/pid;\nerror_log {root}/error.log;\nevents {{}}\nhttp {{\n{temporary}access_log off;\n\
         upstream model {{ server 127.0.0.1:{upstream}; keepalive 16; }}\nserver {{ listen 127.0.0.1:{port};\nlocation / {{\n\
         proxy_pass http://model;\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\nproxy_buffering off;\n\
         proxy_request_buffering off;\nclient_max_body_size 64m;\n}}\n}}\n}}\n"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, settings)?;
    let (file, root) = (file.display().to_string(), root.to_string());
    Ok(launch.with_arguments(&["-p", &root, "-c", &file, "-g", "daemon off;"]))
}

fn launch_haproxy(place: &ProxyPlace) -> Result<ProxyLaunch> {
    let launch = ProxyLaunch::new("haproxy", ProxyKind::Plain, "haproxy")?;
    let (port, upstream) = (launch.port, place.upstream);
    let settings = format!(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 10s\n  timeout client 600s\n  timeout server 600s\n\
         frontend front\n  bind 127.0.0.1:{port}\n  default_backend model\nbackend model\n  http-reuse always\n  server one 127.0.0.1:{upstream}\n"
    );
    let file = place.folder.join("haproxy.cfg");
    fs::write(&file, settings)?;
    Ok(launch.with_arguments(&["-f", &file.display().to_string(), "-db"]))
}

fn launch_ours(place: &ProxyPlace) -> Result<ProxyLaunch> {
    let program = place.command.display().to_string();
    let launch = ProxyLaunch::new(super::OURS, ProxyKind::Ours, program)?;
    let mut launch = launch.with_arguments(&["serve", "--listen", "127.0.0.1:PORT"]);
    let upstream = format!("http://127.0.0.1:{}", place.upstream);
    let store = place.folder.join("store").display().to_string();
    launch.variables = vec![
        ("COMPACT_STORAGE_PATH", store),
        ("COMPACT_GATEWAY_OPENAI_URL", upstream.clone()),
        ("COMPACT_GATEWAY_ANTHROPIC_URL", upstream),
    ];
    Ok(launch)
}

fn launch_litellm(place: &ProxyPlace) -> Result<ProxyLaunch> {
    let program = beside_python(&LITELLM_PROXY, "litellm")?;
    let launch = ProxyLaunch::new("LiteLLM", ProxyKind::Peer, program)?;
    let file = place.folder.join("litellm.yaml");
    let upstream = place.upstream;
    fs::write(
        &file,
        format!(
            "model_list:\n  - model_name: gpt-5\n    litellm_params:\n      model: openai/gpt-5\n\
             \x20     api_base: http://127.0.0.1:{upstream}/v1\n      api_key: sk-bench\n"
        ),
    )?;
    let file = file.display().to_string();
    let mut launch = launch.with_arguments(&[
        "--config",
        &file,
        "--host",
        "127.0.0.1",
        "--port",
        "PORT",
        "--num_workers",
        "1",
        "--telemetry",
        "False",
    ]);
    launch.variables = vec![
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
        ("LITELLM_LOG", "ERROR".to_owned()),
        (
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY",
            "true".to_owned(),
        ),
    ];
    Ok(launch)
}

fn launch_headroom(place: &ProxyPlace) -> Result<ProxyLaunch> {
    let program = beside_python(&HEADROOM_PROXY, "headroom")?;
    let launch = ProxyLaunch::new("headroom", ProxyKind::Peer, program)?;
    let upstream = format!("http://127.0.0.1:{}", place.upstream);
    let mut launch = launch.with_arguments(&[
        "proxy",
        "--host",
        "127.0.0.1",
        "--port",
        "PORT",
        "--no-telemetry",
        "--no-rate-limit",
        "--no-cache",
        "--openai-api-url",
        &upstream,
    ]);
    launch.variables = vec![("HF_HUB_OFFLINE", "1".to_owned())];
    Ok(launch)
}

/// Returns a program that an environment brings along.
fn beside_python(environment: &PythonEnvironment, program: &str) -> Result<String> {
    let python = environment
        .python_path()
        .context("an environment is not there")?;
    let path = Path::new(&python).with_file_name(program);
    if !path.exists() {
        bail!("{} is not there", path.display());
    }
    Ok(path.display().to_string())
}

impl RunningProxy {
    /// Returns the processor time that its processes have taken, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let ticks = self.process_ids().into_iter().filter_map(|id| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let (_, fields) = stat.rsplit_once(") ")?;
            let fields: Vec<f64> = fields
                .split(' ')
                .skip(11)
                .take(2)
                .flat_map(str::parse)
                .collect();
            Some(fields.iter().sum::<f64>())
        });
        // Linux counts in hundredths for everybody who reads it here.
        ticks.sum::<f64>() / 100.0
    }

    /// Returns the memory that its processes take, in megabytes.
    pub(super) fn memory_mb(&self) -> f64 {
        let kilobytes = self.process_ids().into_iter().filter_map(|id| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.trim().split(' ').next()?.parse::<f64>().ok()
        });
        kilobytes.sum::<f64>() / 1024.0
    }

    fn process_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self
            .process
            .iter()
            .map(|process| process.child.id())
            .collect();
        let mut at = 0;
        while let Some(id) = ids.get(at).copied() {
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
            let children = children.unwrap_or_default();
            ids.extend(children.split_whitespace().flat_map(str::parse::<u32>));
            at += 1;
        }
        ids
    }
}
