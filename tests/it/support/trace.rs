//! `strace` on processes that run already: to see the order of their system calls, or to make one
//! of them fail or be the last.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::child::Process;
use super::disk::can_trace;
use super::test_dir::TestDir;

const LIMIT: Duration = Duration::from_secs(60);

/// A trace that is being written. Dropped, it lets go of the processes and they run on.
pub(crate) struct Trace {
    process: Process,
    file: PathBuf,
    _dir: TestDir,
}

impl Trace {
    /// Begins to trace these processes, with all their threads and children, and `arguments` to
    /// say what of them; every thread is held to it on return. `None`, with the reason printed,
    /// where that is not allowed.
    pub(crate) fn attach(pids: &[Pid], arguments: &[&str]) -> Option<Trace> {
        if !can_trace() {
            return None;
        }
        let dir = TestDir::new("trace");
        let file = dir.join("trace");
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-s", "100", "-o"]).arg(&file).args(arguments);
        for pid in pids {
            command.args(["-p", &pid.as_raw_nonzero().to_string()]);
        }
        let process = Process::spawn(&mut command);
        for pid in pids {
            let of = format!("Process {} attached", pid.as_raw_nonzero());
            let attached = |line: &str| {
                let refused = line.contains("Operation not permitted");
                (refused || line.contains(&of)).then_some(!refused)
            };
            if !process.stderr().wait_for(LIMIT, attached) {
                println!("not run, because strace may not trace a process that runs already");
                return None;
            }
        }
        Some(Trace { process, file, _dir: dir })
    }

    /// Lets go of the processes.
    pub(crate) fn detach(mut self) -> String {
        self.process.signal(Signal::TERM);
        self.process.wait(LIMIT);
        std::fs::read_to_string(&self.file).unwrap()
    }

    /// Waits until what it traces has ended.
    pub(crate) fn wait(mut self) -> String {
        self.process.wait(LIMIT);
        std::fs::read_to_string(&self.file).unwrap()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // SIGKILL would end what is traced; after SIGTERM it runs on.
        self.process.signal(Signal::TERM);
        let _ = super::child::wait_for_end(self.process.pid(), LIMIT);
    }
}

/// One system call of a trace, from its begin to its end.
#[derive(Debug)]
pub(crate) struct Call {
    /// Its place among all lines.
    pub(crate) begin: usize,
    /// The same if nothing came between; `usize::MAX` if the trace does not know its end.
    pub(crate) end: usize,
    /// What was asked and what was answered.
    pub(crate) text: String,
}

/// The calls of a trace, in the order of their begins.
pub(crate) fn calls(trace: &str) -> Vec<Call> {
    let mut calls: Vec<(&str, Call)> = vec![];
    for (place, line) in trace.lines().enumerate() {
        let Some((pid, text)) = line.split_once(' ') else { continue };
        let text = text.trim_start();
        if text.starts_with("<... ") {
            let open =
                calls.iter_mut().rev().find(|(of, call)| *of == pid && call.end == usize::MAX);
            if let Some((_, call)) = open {
                call.end = place;
                call.text.push_str(text);
            }
        } else {
            let end = if text.ends_with("<unfinished ...>") { usize::MAX } else { place };
            calls.push((pid, Call { begin: place, end, text: text.to_owned() }));
        }
    }
    calls.into_iter().map(|(_, call)| call).collect()
}

/// `-P` with a path, as strings.
pub(crate) fn only(path: &Path) -> [String; 2] {
    ["-P".to_owned(), path.display().to_string()]
}

#[test]
fn calls_that_were_interrupted_are_put_together() {
    let trace = "7 write(2, \"a\", 1) = 1\n8 fsync(3 <unfinished ...>\n7 read(1) = 0\n\
                 8 <... fsync resumed>) = 0\n9 read(1 <unfinished ...>\n";
    let calls = calls(trace);
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert_eq!((calls[3].begin, calls[3].end), (4, usize::MAX));
    assert_eq!((calls[1].begin, calls[1].end), (1, 3));
    assert!(calls[1].text.ends_with("resumed>) = 0"));
}
