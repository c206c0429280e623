//! A client of server-sent events on a bare connection: what comes is read as it comes.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::http::head;

/// More than the pause between two signs of life.
const LIMIT: Duration = Duration::from_secs(60);

/// An open stream. Dropping it hangs up.
pub(crate) struct EventStream {
    stream: BufReader<TcpStream>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Read and not yet told.
    text: Vec<u8>,
}

/// What stands between two empty lines.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    Event { id: i64, data: Value },
    Comment(String),
}

impl EventStream {
    /// Asks for the stream of this path; the test fails unless it is answered 200.
    pub(crate) async fn open(address: SocketAddr, path: &str, last: Option<i64>) -> EventStream {
        let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
        let last = last.map(|last| last.to_string());
        let headers: Vec<_> = last.iter().map(|last| ("Last-Event-ID", &**last)).collect();
        stream.write_all(head("GET", path, &headers, 0).as_bytes()).await.unwrap();
        let mut stream = EventStream { stream, headers: vec![], text: vec![] };
        let status = stream.line().await.expect("an answer");
        assert!(status.contains(" 200 "), "{status}");
        while let Some((name, value)) = stream.line().await.unwrap().split_once(':') {
            stream.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        stream
    }

    /// The first header of this name, given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    /// The next block; `None` at an orderly end. The test fails if neither comes.
    pub(crate) async fn block(&mut self) -> Option<Block> {
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                return Some(parse(std::str::from_utf8(&block).unwrap()));
            }
            let chunk = tokio::time::timeout(LIMIT, self.chunk()).await;
            let chunk = chunk.expect("a sign of life in its time").expect("an orderly end");
            if chunk.is_empty() {
                assert!(self.text.is_empty(), "an event breaks off");
                return None;
            }
            self.text.extend(chunk);
        }
    }

    /// The next event, comments left out.
    pub(crate) async fn event(&mut self) -> Option<(i64, Value)> {
        loop {
            match self.block().await? {
                Block::Event { id, data } => return Some((id, data)),
                Block::Comment(_) => {}
            }
        }
    }

    /// The ids that the senders gave the next so many events.
    pub(crate) async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = vec![];
        for _ in 0..count {
            let (id, data) = self.event().await.expect("an event");
            assert_eq!(data["event"]["sequence"], id.to_string());
            names.push(data["event"]["externalid"].as_str().unwrap().to_owned());
        }
        names
    }

    /// The next piece of the body, empty at its end; `None` if it breaks off.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line().await?, 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).await.ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.ok()?;
        line.strip_suffix("\r\n").map(str::to_owned)
    }
}

/// Reads a block as the HTML standard has it, as far as ours go.
fn parse(block: &str) -> Block {
    let (mut id, mut data) = (None, None);
    for line in block.lines().filter(|line| !line.is_empty()) {
        assert!(!line.contains('\r'), "{line:?}");
        match line.split_once(':').unwrap() {
            ("", comment) => return Block::Comment(comment.trim().to_owned()),
            ("id", text) => id = Some(text.trim().parse().unwrap()),
            ("data", text) => {
                let json = serde_json::from_str(text).unwrap();
                assert_eq!(data.replace(json), None, "one line for each event");
            }
            _ => panic!("{line:?}"),
        }
    }
    Block::Event { id: id.unwrap(), data: data.unwrap() }
}

#[test]
fn blocks_are_read() {
    let event = Block::Event { id: 42, data: serde_json::json!({"a": 1}) };
    assert_eq!(parse("id: 42\ndata: {\"a\": 1}\n\n"), event);
    assert_eq!(parse(": keep-alive\n\n"), Block::Comment("keep-alive".to_owned()));
}
