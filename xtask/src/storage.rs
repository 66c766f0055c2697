//! Servers for the stores that are not embedded: PostgreSQL, one that speaks S3, and some that speak it
//! and get conditional writes wrong ([`flawed`]). Each is started on a free port of the loopback with
//! data of its own, and stopped, data and all, when it is dropped.

pub(crate) mod flawed;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::environment;
use crate::shell::{self, Console};

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The name of the bucket that tests write to.
const BUCKET: &str = "compact-test";

/// The name and the secret that one server insists on and the others take; no secret at all.
const KEY: &str = "S3RVER";

/// The test servers that are running; they end when this is dropped.
#[derive(Default)]
pub(crate) struct TestServers {
    running: Vec<ServerProcess>,
    /// What tests are told.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// A server that ends, data and all, when this is dropped.
pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) data: Option<PathBuf>,
    /// How it is told to end, where being killed would leave something behind.
    pub(crate) farewell: Option<&'static str>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let told = self
            .farewell
            .is_some_and(|signal| shell::run_succeeds("kill", &[signal, &id]));
        if !told {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        if let Some(data) = &self.data {
            let _ = std::fs::remove_dir_all(data);
        }
    }
}

impl TestServers {
    /// Starts whatever is installed.
    pub(crate) fn start() -> Result<TestServers> {
        let mut servers = TestServers::default();
        if let Some(programs) = postgres_programs() {
            servers.start_postgres(&programs)?;
        }
        if let Some(python) = environment::TESTS.python_path() {
            servers.start_s3(&python)?;
        }
        if let Some(flawed) = flawed::FlawedServer::Ignoring.find_installed() {
            servers.start_flawed(&flawed)?;
        }
        Ok(servers)
    }

    fn start_postgres(&mut self, programs: &Path) -> Result<()> {
        let data = std::env::temp_dir().join(format!("compact-postgres-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        make_certificates(&data).context("could not make certificates with openssl")?;
        let owner = user_prefix(&data)?;
        let place = data.display().to_string();
        let cluster = format!("{place}/cluster");
        let initdb = programs.join("initdb").display().to_string();
        let arguments = [
            "-D",
            &cluster,
            "-U",
            "test",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-instructions",
        ];
        run_quietly(&owner, &initdb, &arguments)?;
        add_guarded_user(&owner, programs, &cluster)?;
        let port = free_port()?;
        let settings = [
            "listen_addresses=localhost".to_owned(),
            format!("port={port}"),
            format!("unix_socket_directories={place}"),
            "max_connections=200".to_owned(),
            "shared_buffers=32MB".to_owned(),
            // Nothing here outlives the tests.
            "fsync=off".to_owned(),
            "synchronous_commit=off".to_owned(),
            "full_page_writes=off".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={place}/server.pem"),
            format!("ssl_key_file={place}/server.key"),
        ];
        let server = programs.join("postgres").display().to_string();
        let mut command = command_as(&owner, &server);
        command.args(["-D", &cluster]);
        for setting in &settings {
            command.args(["-c", setting]);
        }
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.running.push(ServerProcess {
            child,
            data: Some(data),
            // It ends its own processes then.
            farewell: Some("-QUIT"),
        });
        wait_for(port).context("PostgreSQL did not start")?;
        let url = format!("postgres://test@127.0.0.1:{port}");
        self.variables.push(("COMPACT_TEST_POSTGRES", url));
        let authority = format!("{place}/ca.pem");
        self.variables.push(("COMPACT_TEST_POSTGRES_CA", authority));
        Ok(())
    }

    fn start_s3(&mut self, python: &str) -> Result<()> {
        let port = free_port()?.to_string();
        let child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.running.push(ServerProcess {
            child,
            data: None,
            farewell: None,
        });
        let port: u16 = port.parse()?;
        wait_for(port).context("the server that speaks S3 did not start")?;
        make_bucket(port)?;
        let endpoint = format!("http://127.0.0.1:{port}");
        self.variables.push(("COMPACT_TEST_S3", endpoint));
        self.variables.extend(access_keys());
        Ok(())
    }
}

fn access_keys() -> [(&'static str, String); 2] {
    [
        ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", KEY.to_owned()),
    ]
}

/// Returns whether PostgreSQL's programs are here.
pub(crate) fn has_postgres() -> bool {
    postgres_programs().is_some() && shell::run_succeeds("openssl", &["version"])
}

/// Gets PostgreSQL from the system's packages.
pub(crate) fn install_postgres(console: &Console) -> Result<()> {
    let names = ["postgresql", "openssl"];
    if user_id()? != "0" {
        bail!("needs root: `apt-get install {}`", names.join(" "));
    }
    shell::install_debian_packages(console, &names)
}

/// Returns the folder of `initdb` and `postgres`, which Debian keeps out of the path.
fn postgres_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = debian.chain(std::env::split_paths(&path)).collect();
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// Returns the words that make a command run as somebody else, since PostgreSQL refuses to run as root.
fn user_prefix(data: &Path) -> Result<Vec<&'static str>> {
    if user_id()? != "0" {
        return Ok(Vec::new());
    }
    shell::run("chown", &["-R", "postgres", &data.display().to_string()])?;
    Ok(vec![
        "setpriv",
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
    ])
}

/// Adds a user who is let in with a password only, for tests of those who do not know it.
fn add_guarded_user(owner: &[&str], programs: &Path, cluster: &str) -> Result<()> {
    let rules = Path::new(cluster).join("pg_hba.conf");
    let others = std::fs::read_to_string(&rules)?;
    let rule = "host all guarded 127.0.0.1/32 scram-sha-256";
    std::fs::write(&rules, format!("{rule}\n{others}"))?;
    let server = programs.join("postgres").display().to_string();
    let mut child = command_as(owner, &server)
        .args(["--single", "-D", cluster, "postgres"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut told = child.stdin.take().context("nobody listens")?;
    writeln!(told, "CREATE ROLE guarded LOGIN PASSWORD 'known to nobody'")?;
    drop(told);
    child.wait().map(drop).context("no user could be added")
}

fn user_id() -> Result<String> {
    Ok(shell::output("id", &["-u"])?.trim().to_owned())
}

fn command_as(owner: &[&str], program: &str) -> Command {
    let mut words = owner.iter().copied().chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    command.args(words).current_dir(std::env::temp_dir());
    command
}

fn run_quietly(owner: &[&str], program: &str, arguments: &[&str]) -> Result<()> {
    let output = command_as(owner, program).args(arguments).output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("`{program}` failed: {}", words.trim());
    }
    Ok(())
}

/// Creates a certificate authority and a certificate for `localhost` signed by it.
fn make_certificates(folder: &Path) -> Result<()> {
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n")?;
    let openssl = |line: &str| {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = Command::new("openssl")
            .args(&arguments)
            .current_dir(folder)
            .output()?;
        if !output.status.success() {
            bail!("`openssl {line}` failed");
        }
        Ok(())
    };
    openssl(
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=compact-test -keyout ca.key -out ca.pem",
    )?;
    openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr")?;
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
    )
}

pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

pub(crate) fn wait_for(port: u16) -> Result<()> {
    let start = Instant::now();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
        if start.elapsed() > PATIENCE {
            bail!("nothing answers on port {port}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn make_bucket(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(
        stream,
        "PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.contains(" 200 ") {
        bail!(
            "no bucket could be made: {}",
            answer.lines().next().unwrap_or_default()
        );
    }
    Ok(())
}
