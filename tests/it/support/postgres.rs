//! A real PostgreSQL, started by the tests for themselves.
//!
//! Everything here blocks until it is done: a `current_thread` runtime that must keep serving
//! meanwhile calls it in `spawn_blocking`, or the test asks for `flavor = "multi_thread"`.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid};

use super::child::{Process, wait_for_end};
use super::test_dir::TestDir;

/// For whatever a healthy server does in well under a second, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// One server with a data directory and a port of its own. Durable as in production, small, and
/// without passwords. It ends, and its directory goes, with the value or with the test process.
pub(crate) struct Cluster {
    programs: PathBuf,
    dir: TestDir,
    port: u16,
    options: Vec<(String, String)>,
    server: Option<Process>,
    databases: AtomicU32,
}

/// The server that all tests of this process share, started by the first that asks. Each takes a
/// database of its own from it; only a private cluster can be stopped.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start_private(&[]))
}

impl Cluster {
    /// A server for one test alone, with these settings over the usual ones.
    pub(crate) fn start_private(options: &[(&str, &str)]) -> Cluster {
        let usual = [
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("max_connections", "300"),
            ("shared_buffers", "64MB"),
        ];
        let options = usual.iter().chain(options);
        let mut cluster = Cluster {
            programs: programs(),
            dir: TestDir::new("postgres"),
            port: 0,
            options: options.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            server: None,
            databases: AtomicU32::new(0),
        };
        cluster.initialize();
        // Between our look at a port and the server's bind somebody else may take it.
        let mut log = String::new();
        for _ in 0..5 {
            cluster.port = free_port();
            match cluster.launch() {
                Ok(()) => return cluster,
                Err(words) => log = words,
            }
        }
        panic!("PostgreSQL does not come up; it wrote:\n{log}");
    }

    /// A new, empty database; gives its URL.
    pub(crate) fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.url(&name)
    }

    /// The URL of one of its databases, also while the server is down.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// What `psql` prints for this statement: a row a line, fields parted by `|`.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-d", &self.url(database), "-c", statement])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql failed on {statement:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// What the running server has logged.
    pub(crate) fn log(&self) -> String {
        self.server.as_ref().map(|server| server.stderr().text()).unwrap_or_default()
    }

    /// SIGKILL to the server and all its processes, as when the machine loses its memory but not
    /// its disk. All of them are gone on return.
    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().expect("a server that runs");
        // Halted first, so that it starts no further process while we list those it has.
        server.signal(Signal::STOP);
        let children = children_of(server.pid());
        server.kill();
        for child in children {
            // An error means that it is gone: the server's end is an order to its processes too.
            let _ = rustix::process::kill_process(child, Signal::KILL);
            assert!(wait_for_end(child, LIMIT), "a process of PostgreSQL survives SIGKILL");
        }
    }

    /// An orderly stop, which cuts the connections that are open.
    pub(crate) fn stop(&mut self) {
        let mut server = self.server.take().expect("a server that runs");
        server.signal(Signal::INT);
        server.wait(LIMIT);
    }

    /// Starts it again on the same port with the same data, and waits until it takes connections.
    pub(crate) fn start(&mut self) {
        assert!(self.server.is_none(), "it runs already");
        if let Err(log) = self.launch() {
            panic!("PostgreSQL does not come up again; it wrote:\n{log}");
        }
    }

    fn initialize(&self) {
        if geteuid().is_root() {
            let owner = postgres_user();
            chown(self.dir.path(), Some(owner.0), Some(owner.1)).unwrap();
        }
        let output = self
            .command("initdb")
            .args(["--no-sync", "--auth=trust", "--username=postgres"])
            .args(["--encoding=UTF8", "--locale=C"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "initdb failed: {errors}");
    }

    fn launch(&mut self) -> Result<(), String> {
        let mut command = self.command("postgres");
        command.args(["-p", &self.port.to_string()]);
        for (name, value) in &self.options {
            command.args(["-c", &format!("{name}={value}")]);
        }
        let server = Process::spawn(&mut command);
        let ready = |line: &str| line.contains("ready to accept connections").then_some(());
        match server.stderr().find(LIMIT, ready) {
            Some(()) => {
                self.server = Some(server);
                Ok(())
            }
            None => Err(server.stderr().text()),
        }
    }

    /// A program of the server on its data directory; not as root, because it refuses that.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = if geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.arg("-D").arg(self.dir.join("data")).current_dir(self.dir.path());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.signal(Signal::QUIT);
            wait_for_end(server.pid(), LIMIT);
        }
    }
}

/// The directory that holds `initdb`, `postgres` and `psql`.
fn programs() -> PathBuf {
    let complete = |dir: &PathBuf| {
        ["initdb", "postgres", "psql"].iter().all(|program| dir.join(program).is_file())
    };
    if let Some(dir) = std::env::var_os("INBOXD_TEST_PG_BIN") {
        let dir = PathBuf::from(dir);
        assert!(complete(&dir), "INBOXD_TEST_PG_BIN names no directory with initdb and postgres");
        return dir;
    }
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<u32> =
        debian.filter_map(|version| version.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    let debian = versions
        .iter()
        .map(|version| Path::new("/usr/lib/postgresql").join(version.to_string()).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian.chain(std::env::split_paths(&path)).find(complete).expect(
        "PostgreSQL's programs (initdb, postgres, psql) were not found: run scripts/test, which \
         installs them, or name their directory in INBOXD_TEST_PG_BIN",
    )
}

/// The user and group id of Debian's `postgres`.
fn postgres_user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    users
        .lines()
        .find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields[0] == "postgres")
                .then(|| (fields[2].parse().unwrap(), fields[3].parse().unwrap()))
        })
        .expect(
            "PostgreSQL does not run as root, and there is no user `postgres`: run scripts/test",
        )
}

/// A port nobody listens on, below those the kernel gives to outgoing connections, so that it is
/// still free when a stopped server comes back to it.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = rand::random_range(15_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The processes whose parent is this one.
fn children_of(parent: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
            // After the name in parentheses, which may hold anything: the state, then the parent.
            let of: i32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            if of == parent.as_raw_nonzero().get() { Pid::from_raw(pid) } else { None }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Connection, PgConnection};

    #[tokio::test]
    async fn databases_of_the_shared_server_are_apart_and_durable() {
        let [one, other] = [shared().create_database(), shared().create_database()];
        assert_ne!(one, other);
        let mut one = PgConnection::connect(&one).await.unwrap();
        let mut other = PgConnection::connect(&other).await.unwrap();
        sqlx::query("CREATE TABLE t (n int)").execute(&mut one).await.unwrap();
        sqlx::query("CREATE TABLE t (n int)").execute(&mut other).await.unwrap();
        for setting in ["fsync", "synchronous_commit"] {
            assert_eq!(shared().sql("postgres", &format!("SHOW {setting}")), "on");
        }
    }

    #[tokio::test]
    async fn a_killed_server_comes_back_on_its_port_with_what_was_committed() {
        let mut cluster = Cluster::start_private(&[("work_mem", "3MB")]);
        assert_eq!(cluster.sql("postgres", "SHOW work_mem"), "3MB");
        let url = cluster.create_database();
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::query("CREATE TABLE t (n int)").execute(&mut connection).await.unwrap();
        sqlx::query("INSERT INTO t VALUES (1)").execute(&mut connection).await.unwrap();

        cluster.kill();
        assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
        assert!(PgConnection::connect(&url).await.is_err());

        cluster.start();
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let rows: i64 =
            sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&mut connection).await.unwrap();
        assert_eq!(rows, 1);
        assert!(cluster.log().contains("automatic recovery in progress"));

        cluster.stop();
        assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
        cluster.start();
        assert!(PgConnection::connect(&url).await.is_ok());
        assert!(!cluster.log().contains("automatic recovery in progress"));
    }
}
