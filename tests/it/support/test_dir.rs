//! Directories of tests, which go away whatever happens to the test process.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// A fresh directory, removed on drop. If the test process dies first, the guardian removes it,
/// after ending every process whose command line names it and unmounting what is mounted on it.
pub(crate) struct TestDir {
    dir: tempfile::TempDir,
}

impl TestDir {
    /// Makes the directory under the system's temporary one; `name` tells a reader what it is for.
    pub(crate) fn new(name: &str) -> TestDir {
        let dir = tempfile::Builder::new().prefix(&format!("inboxd-{name}-")).tempdir().unwrap();
        guard(dir.path());
        TestDir { dir }
    }

    /// Its absolute path.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The absolute path of a file in it.
    pub(crate) fn join(&self, file: &str) -> PathBuf {
        self.path().join(file)
    }
}

/// Reads directories, one a line, until its input ends, which is when this process ends, by
/// whatever signal; then clears up those that are still there. QUIT first, because PostgreSQL takes
/// it as an immediate shutdown and gives back its shared memory; `exe` of a zombie does not exist.
const GUARDIAN: &str = r#"
dirs=$(cat)
IFS='
'
ended() {
  for process in $found; do [ ! -e "$process/exe" ] || return 1; done
}
for dir in $dirs; do
  [ -d "$dir" ] || continue
  found=
  for process in /proc/[0-9]*; do
    if grep -qaF -- "$dir" "$process/cmdline" 2>/dev/null; then
      kill -QUIT "${process#/proc/}" && found="$found$process$IFS"
    fi
  done
  tries=0
  until ended || [ "$tries" = 50 ]; do sleep 0.1; tries=$((tries + 1)); done
  for process in $found; do
    [ ! -e "$process/exe" ] || kill -KILL "${process#/proc/}"
  done
  umount -l "$dir" 2>/dev/null
  rm -rf -- "$dir"
done
"#;

/// Hands a directory to the guardian of this test process, which the first call starts.
fn guard(dir: &Path) {
    static RUNNING: OnceLock<Mutex<Child>> = OnceLock::new();
    let guardian = RUNNING.get_or_init(|| {
        // A process group of its own, because Ctrl-C goes to the whole group of the tests.
        let guardian = Command::new("sh")
            .args(["-c", GUARDIAN])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn();
        Mutex::new(guardian.expect("a shell guards the tests' directories"))
    });
    let mut guardian = guardian.lock().unwrap();
    let input = guardian.stdin.as_mut().expect("its input is a pipe");
    writeln!(input, "{}", dir.display()).unwrap();
}

#[test]
fn a_directory_goes_away_with_its_owner() {
    let dir = TestDir::new("dir");
    std::fs::write(dir.join("file"), "x").unwrap();
    let path = dir.path().to_path_buf();
    drop(dir);
    assert!(!path.exists());
}
