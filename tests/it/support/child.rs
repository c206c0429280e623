//! A child process of a test: its stderr kept whole, its end awaited with a bound.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::output::Output;

/// A running process, killed on drop.
pub(crate) struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    stderr: Output,
}

impl Process {
    /// Starts it, with nothing on its stdin and stdout; the test fails if it cannot be started.
    pub(crate) fn spawn(command: &mut Command) -> Process {
        Process::with_stdout(command, Stdio::null())
    }

    /// The same with what it writes to stdout, for a program that answers there.
    pub(crate) fn spawn_heard(command: &mut Command) -> (Process, Output) {
        let (reader, writer) = std::io::pipe().unwrap();
        let process = Process::with_stdout(command, writer.into());
        // The command holds an end of the pipe, which would keep it from ending.
        command.stdout(Stdio::null());
        (process, Output::of(reader))
    }

    fn with_stdout(command: &mut Command, stdout: Stdio) -> Process {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let stderr = Output::of(child.stderr.take().expect("stderr is a pipe"));
        Process { name, child, ended: None, stderr }
    }

    /// What it wrote to stderr.
    pub(crate) fn stderr(&self) -> &Output {
        &self.stderr
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal, unless it has been seen to end.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            kill_process(self.pid(), signal).unwrap();
        }
    }

    /// Waits for its end; the test fails, and shows its stderr, if the limit passes first.
    pub(crate) fn wait(&mut self, limit: Duration) -> ExitStatus {
        if let Some(status) = self.ended {
            return status;
        }
        if !wait_for_end(self.pid(), limit) {
            panic!("{} did not end within {limit:?}; it wrote:\n{}", self.name, self.stderr.text());
        }
        let status = self.child.wait().unwrap();
        self.ended = Some(status);
        status
    }

    /// SIGKILL, and its end awaited.
    pub(crate) fn kill(&mut self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.wait(Duration::from_secs(30))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // A failure here would hide the one that the test is already reporting.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits until a process has ended, ours or not, reaped or not; false after the limit.
pub(crate) fn wait_for_end(pid: Pid, limit: Duration) -> bool {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap();
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot wait for process {pid:?}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    const SOON: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Process {
        Process::spawn(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn an_exit_status_and_the_whole_stderr_are_kept() {
        let mut process = shell("echo oops >&2; exit 3");
        assert_eq!(process.wait(SOON).code(), Some(3));
        assert!(process.stderr().wait_for_end(SOON));
        assert_eq!(process.stderr().bytes(), b"oops\n");
        process.signal(Signal::TERM);
    }

    #[test]
    fn a_signal_reaches_it() {
        let mut process = shell("trap 'exit 7' TERM; echo ready >&2; while :; do sleep 0.01; done");
        process.stderr().wait_for(SOON, |line| (line == "ready").then_some(()));
        process.signal(Signal::TERM);
        assert_eq!(process.wait(SOON).code(), Some(7));
    }

    #[test]
    fn the_end_is_awaited_with_a_bound() {
        let mut process = shell("exec sleep 1000");
        assert!(!wait_for_end(process.pid(), Duration::from_millis(20)));
        assert_eq!(process.kill().signal(), Some(9));
    }
}
