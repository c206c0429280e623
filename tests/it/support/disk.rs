//! Faults of the disk and of the database file, and a look at the system calls made on them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::test_dir::TestDir;

/// A file system of a few megabytes in memory, unmounted on drop.
pub(crate) struct SmallDisk {
    dir: TestDir,
}

impl SmallDisk {
    /// Mounts one of this size, such as `"4m"`. Only root may: for others `None`, with the reason
    /// printed, and the test has nothing to run on.
    pub(crate) fn mount(size: &str) -> Option<SmallDisk> {
        let dir = TestDir::new("disk");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0755"), "tmpfs"])
            .arg(dir.path())
            .output()
            .unwrap();
        if output.status.success() {
            Some(SmallDisk { dir })
        } else {
            let reason = String::from_utf8_lossy(&output.stderr);
            println!("not run, because no tmpfs can be mounted: {}", reason.trim());
            None
        }
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because a process that the test killed may still be letting go of its files.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Whether `strace` is there and may trace; if not, says why, and the test has nothing to look at.
pub(crate) fn can_trace() -> bool {
    match Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            println!("not run, because strace may not trace here: {}", reason.trim());
            false
        }
        Err(error) => {
            println!("not run, because strace cannot be started: {error}");
            false
        }
    }
}

/// Another process that holds a lock on a SQLite file until dropped.
pub(crate) struct SqliteLock {
    holder: Child,
}

/// What is locked out meanwhile, in WAL mode: `Immediate` writers; `Exclusive` the same there, and
/// readers as well under a rollback journal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock {
    Immediate,
    Exclusive,
}

/// Ends when its input does, which is when its owner lets go of it or dies.
const HOLDER: &str = "
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute('BEGIN ' + sys.argv[2])
print('locked', flush=True)
sys.stdin.read()
";

impl SqliteLock {
    /// Takes the lock, waiting up to 30 s for it; held on return.
    pub(crate) fn hold(file: &Path, lock: Lock) -> SqliteLock {
        let mut holder = Command::new("python3")
            .args(["-c", HOLDER])
            .arg(file)
            .arg(format!("{lock:?}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 locks the file from outside: run scripts/test, which installs it");
        let mut word = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut word).unwrap();
        assert_eq!(word, "locked\n", "the file cannot be locked: {}", file.display());
        SqliteLock { holder }
    }

    /// Lets go of it; free on return.
    pub(crate) fn release(self) {
        drop(self);
    }
}

impl Drop for SqliteLock {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Connection, SqliteConnection};

    #[test]
    fn a_small_disk_fills_and_can_be_freed() {
        let Some(disk) = SmallDisk::mount("1m") else { return };
        let file = disk.path().join("file");
        let full = std::fs::write(&file, vec![0; 2 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, vec![0; 1 << 19]).unwrap();
        let path = disk.path().to_path_buf();
        drop(disk);
        assert!(!path.exists());
    }

    #[test]
    fn where_strace_is_it_sees_a_sync() {
        if !can_trace() {
            return;
        }
        let dir = TestDir::new("strace");
        let trace = dir.join("trace");
        let status = Command::new("strace")
            .args(["-f", "-e", "trace=fsync,fdatasync", "-o"])
            .args([&trace, Path::new("sync"), Path::new(".")])
            .current_dir(dir.path())
            .status()
            .unwrap();
        assert!(status.success());
        assert!(std::fs::read_to_string(trace).unwrap().contains("fsync("));
    }

    #[tokio::test]
    async fn a_lock_is_held_by_another_process_until_released() {
        let dir = TestDir::new("lock");
        let file = dir.join("test.db");
        let url = format!("sqlite:{}?mode=rwc", file.display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("PRAGMA busy_timeout = 0; CREATE TABLE t (n int)")
            .execute(&mut connection)
            .await
            .unwrap();
        for lock in [Lock::Immediate, Lock::Exclusive] {
            let held = SqliteLock::hold(&file, lock);
            let insert = sqlx::query("INSERT INTO t VALUES (1)").execute(&mut connection).await;
            assert!(insert.unwrap_err().to_string().contains("locked"), "{lock:?}");
            held.release();
            sqlx::query("INSERT INTO t VALUES (1)").execute(&mut connection).await.unwrap();
        }
    }
}
