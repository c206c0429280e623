//! One HTTP/1.1 request as bytes on a socket become it.

use std::io;

use super::wire::Wire;

/// The server takes no more of each.
const MAX_HEAD: usize = 256 << 10;
const MAX_BODY: usize = 1 << 20;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    /// `GET`, `POST` or another.
    pub verb: String,
    /// Path and query as sent.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// The body is too large and was not read; the connection is closed after the answer.
    pub too_large: bool,
}

impl Incoming {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the client wants the connection closed, or it has to be.
    pub(super) fn closes(&self) -> bool {
        let asked = self.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
        asked || self.too_large
    }

    /// Reads the next request; `None` if the client closed the connection instead.
    pub(super) async fn read(wire: &mut Wire) -> io::Result<Option<Self>> {
        let Some(end) = read_until(wire, b"\r\n\r\n", MAX_HEAD).await? else { return Ok(None) };
        let head = wire.take(end);
        let mut request = Self::from_head(&String::from_utf8_lossy(&head))?;
        if request.header("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue")) {
            wire.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if request.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            request.read_chunks(wire).await?;
            return Ok(Some(request));
        }
        let length = request.header("content-length").unwrap_or("0").trim();
        let length: usize = length.parse().map_err(|_| malformed("Content-Length"))?;
        if length > MAX_BODY {
            request.too_large = true;
        } else {
            request.body = wire.exactly(length).await?;
        }
        Ok(Some(request))
    }

    fn from_head(head: &str) -> io::Result<Self> {
        let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (Some(verb), Some(target), Some(_)) = (first.next(), first.next(), first.next()) else {
            return Err(malformed("request line"));
        };
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        Ok(Self {
            verb: verb.to_owned(),
            target: target.to_owned(),
            headers: lines.filter_map(header).collect(),
            ..Self::default()
        })
    }

    async fn read_chunks(&mut self, wire: &mut Wire) -> io::Result<()> {
        loop {
            let end = read_until(wire, b"\r\n", MAX_HEAD).await?.ok_or_else(cut_off)?;
            let line = wire.take(end);
            let size = String::from_utf8_lossy(&line);
            let size = size.trim().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| malformed("chunk size"))?;
            if self.body.len() + size > MAX_BODY {
                self.too_large = true;
                return Ok(());
            }
            self.body.extend(wire.exactly(size).await?);
            wire.exactly(2).await?;
            if size == 0 {
                return Ok(());
            }
        }
    }
}

/// Reads until `mark` is buffered and says where it ends; `None` at the end of the stream.
async fn read_until(wire: &mut Wire, mark: &[u8], most: usize) -> io::Result<Option<usize>> {
    let mut searched = 0;
    loop {
        let buffered = wire.buffered();
        let from = searched.min(buffered.len());
        let found = buffered[from..].windows(mark.len()).position(|window| window == mark);
        if let Some(at) = found {
            return Ok(Some(from + at + mark.len()));
        }
        if buffered.len() > most {
            return Err(malformed("head"));
        }
        // The mark may begin in the last bytes read so far.
        searched = buffered.len().saturating_sub(mark.len() - 1);
        if !wire.read_more().await {
            return if wire.buffered().is_empty() { Ok(None) } else { Err(cut_off()) };
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed {what}"))
}

pub(super) fn cut_off() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
