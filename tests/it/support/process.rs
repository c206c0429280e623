//! The real `inboxd` binary, on a config file of the test, in a directory of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::child::Process;
use super::output::Output;
use super::test_dir::TestDir;

/// For a start or an orderly stop, which take well under a second, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// What outlives one run of the gateway: its directory with `inboxd.toml` and perhaps
/// `inboxd.db`, and its environment. Starting twice on one home is a restart.
pub(crate) struct Home {
    dir: TestDir,
    environment: Vec<(String, String)>,
}

impl Home {
    /// A home with this config. The text goes on inside `[server]`, whose two listeners are on
    /// free loopback ports: first further keys of that table, if any, then other tables.
    pub(crate) fn new(config: &str) -> Home {
        let home = Home { dir: TestDir::new("gateway"), environment: vec![] };
        home.configure(config);
        home
    }

    /// Replaces the config, as an operator would before a restart or a SIGHUP.
    pub(crate) fn configure(&self, config: &str) {
        let listeners = "[server]\npublic = \"127.0.0.1:0\"\nprivate = \"127.0.0.1:0\"\n";
        std::fs::write(self.dir.join("inboxd.toml"), format!("{listeners}{config}\n")).unwrap();
    }

    /// Adds a variable to the environment. Of the tests' own environment no `INBOXD_*` is kept.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Home {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The working directory of the gateway.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// `inboxd` with these arguments, on this home's config, environment and directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inboxd"));
        command.arg("--config").arg(self.dir.join("inboxd.toml")).args(arguments);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("INBOXD_") {
                command.env_remove(name);
            }
        }
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment).current_dir(self.dir.path());
        command
    }

    /// `inboxd serve`, up and listening. Blocks until then, so a test that serves a fake which the
    /// gateway asks at its start needs a `multi_thread` runtime.
    pub(crate) fn start(&self) -> Gateway {
        Gateway::start(&mut self.command(&["serve"]))
    }
}

/// One run of `inboxd serve`, killed on drop.
pub(crate) struct Gateway {
    /// For webhooks.
    pub(crate) public: SocketAddr,
    /// For workers and operators.
    pub(crate) private: SocketAddr,
    process: Process,
}

impl Gateway {
    /// Runs a command that serves, under `strace` perhaps, and reads from its log where it listens.
    pub(crate) fn start(command: &mut Command) -> Gateway {
        let process = Process::spawn(command);
        let Some((public, private)) = process.stderr().find(LIMIT, addresses) else {
            panic!("the gateway did not come up; it wrote:\n{}", process.stderr().text());
        };
        Gateway { public, private, process }
    }

    /// All that it logged so far; a line of it can be waited for.
    pub(crate) fn log(&self) -> &Output {
        self.process.stderr()
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Sends a signal and does not wait for what it does.
    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// SIGKILL; gone on return.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    /// SIGTERM, and waits for the end. The test fails if the drain takes over a minute.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait(LIMIT)
    }

    /// Waits for an end that something else brings about.
    pub(crate) fn wait(mut self, limit: Duration) -> ExitStatus {
        self.process.wait(limit)
    }
}

/// The public and the private address, if this line of the log says that both are open.
fn addresses(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    if fields["message"] != "listening" {
        return None;
    }
    let address = |name: &str| fields[name].as_str()?.parse().ok();
    Some((address("public")?, address("private")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    const LISTENING: &str = r#"echo '{"fields":{"message":"listening","public":"127.0.0.1:1","private":"127.0.0.1:2"}}' >&2; "#;

    fn stand_in(then: &str) -> Gateway {
        Gateway::start(Command::new("sh").args(["-c", &format!("{LISTENING}{then}")]))
    }

    #[test]
    fn the_addresses_come_from_the_log() {
        let gateway = stand_in("exec sleep 1000");
        assert_eq!(gateway.public.port(), 1);
        assert_eq!(gateway.private.port(), 2);
        let log = gateway.log().clone();
        gateway.kill();
        assert!(log.text().contains("listening"));
        assert_eq!(addresses(r#"{"message":"listening"}"#), None);
        assert_eq!(addresses("listening"), None);
    }

    #[test]
    fn it_is_terminated_and_its_status_known() {
        let status = stand_in("exec sleep 1000").terminate();
        assert_eq!(status.signal(), Some(15));
        assert_eq!(stand_in("exit 4").wait(LIMIT).code(), Some(4));
    }

    #[test]
    #[should_panic(expected = "the gateway did not come up")]
    fn a_gateway_that_does_not_come_up_fails_the_test() {
        let home = Home::new("no_such_key = 1").env("INBOXD_TOKEN", "t");
        assert!(home.dir().join("inboxd.toml").exists());
        home.start();
    }
}
