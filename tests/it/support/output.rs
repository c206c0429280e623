//! What a child process writes, kept whole, with a way to wait for a line of it.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// All that was read so far from a pipe. Clones share it.
#[derive(Clone)]
pub(crate) struct Output {
    shared: Arc<(Mutex<Progress>, Condvar)>,
}

struct Progress {
    bytes: Vec<u8>,
    ended: bool,
}

impl Output {
    /// Reads the pipe to its end in a thread of its own, so that the child never waits for us.
    pub(crate) fn of(mut pipe: impl Read + Send + 'static) -> Output {
        let shared =
            Arc::new((Mutex::new(Progress { bytes: vec![], ended: false }), Condvar::new()));
        let output = Output { shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            let (read, changed) = &*shared;
            let mut buffer = [0; 8192];
            loop {
                let count = pipe.read(&mut buffer).unwrap_or(0);
                let mut read = read.lock().unwrap();
                read.bytes.extend_from_slice(&buffer[..count]);
                read.ended = count == 0;
                changed.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        output
    }

    /// The first line, from the beginning, of which `pick` makes something: waits until there is
    /// one, the pipe ends or the limit is reached; `None` in the last two cases.
    pub(crate) fn find<T>(&self, limit: Duration, pick: impl Fn(&str) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + limit;
        let (read, changed) = &*self.shared;
        let mut read = read.lock().unwrap();
        let mut looked_at = 0;
        loop {
            let unseen = &read.bytes[looked_at..];
            let whole = if read.ended {
                unseen.len()
            } else {
                unseen.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
            };
            let lines = String::from_utf8_lossy(&unseen[..whole]);
            if let Some(found) = lines.lines().find_map(&pick) {
                return Some(found);
            }
            looked_at += whole;
            let left = deadline.saturating_duration_since(Instant::now());
            if read.ended || left.is_zero() {
                return None;
            }
            read = changed.wait_timeout(read, left).unwrap().0;
        }
    }

    /// As [`Output::find`], but without such a line the test fails and shows the whole output.
    pub(crate) fn wait_for<T>(&self, limit: Duration, pick: impl Fn(&str) -> Option<T>) -> T {
        self.find(limit, pick).unwrap_or_else(|| {
            panic!("no such line within {limit:?} in this output:\n{}", self.text())
        })
    }

    /// The exact bytes up to now.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.shared.0.lock().unwrap().bytes.clone()
    }

    /// The same for a reader: what is not UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Waits until the pipe has ended, so that nothing more can come; false after the limit.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> bool {
        let (read, changed) = &*self.shared;
        let read = read.lock().unwrap();
        changed.wait_timeout_while(read, limit, |read| !read.ended).unwrap().0.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn a_line_is_found_when_it_is_whole_and_the_end_completes_the_last() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let output = Output::of(reader);
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(output.wait_for(SOON, |line| (line == "one").then_some(1)), 1);
        let tw = |line: &str| line.starts_with("tw").then(|| line.to_owned());
        assert_eq!(output.find(Duration::from_millis(20), tw), None);
        writer.write_all(b"o\n\xffthree").unwrap();
        assert_eq!(output.wait_for(SOON, tw), "two");
        drop(writer);
        assert!(output.wait_for_end(SOON));
        assert_eq!(output.bytes(), b"one\ntwo\n\xffthree");
        output.wait_for(SOON, |line| line.contains("three").then_some(()));
        assert_eq!(output.find(SOON, |line| (line == "four").then_some(())), None);
    }
}
