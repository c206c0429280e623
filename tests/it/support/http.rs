//! A plain HTTP/1.1 client on a bare connection, which can also break off, dawdle and misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// More than a claim that waits may take, which is the slowest there is.
const LIMIT: Duration = Duration::from_secs(90);

/// One connection. Dropping it hangs up.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case, in the order of arrival.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// One POST on a connection of its own.
pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let mut connection = Connection::open(address).await;
    connection.request("POST", path, headers, body).await.expect("an answer")
}

/// One GET on a connection of its own.
pub(crate) async fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = Connection::open(address).await;
    connection.request("GET", path, headers, b"").await.expect("an answer")
}

impl Connection {
    /// Connects; the test fails if nobody listens.
    pub(crate) async fn open(address: SocketAddr) -> Connection {
        Connection::try_open(address).await.unwrap()
    }

    /// Connects, if somebody listens.
    pub(crate) async fn try_open(address: SocketAddr) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// Our own address, by which the peer's side of the connection can be found.
    pub(crate) fn local(&self) -> SocketAddr {
        self.stream.get_ref().local_addr().unwrap()
    }

    /// Hangs up with a reset, so that the peer cannot write any more either.
    pub(crate) fn reset(self) {
        self.stream.get_ref().set_zero_linger().unwrap();
    }

    /// Sends a whole request and reads its answer; `None` if the peer hangs up instead. The
    /// connection is kept for the next. `Host` and `Content-Length` are added.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Response> {
        let head = head(method, path, headers, body.len());
        let request = [head.as_bytes(), body].concat();
        // A peer may answer, and close, before it has read all: the answer is what counts.
        let _ = self.write(&request).await;
        self.response().await
    }

    /// Sends these bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Reads the next answer to its end, interim ones (1xx) left out; `None` if the peer hangs up
    /// before it is whole. The test fails if it takes longer than any answer of ours may.
    pub(crate) async fn response(&mut self) -> Option<Response> {
        tokio::time::timeout(LIMIT, self.read_response()).await.expect("an answer within its time")
    }

    async fn read_response(&mut self) -> Option<Response> {
        loop {
            let status_line = self.line().await?;
            let status: u16 = status_line.split(' ').nth(1).unwrap().parse().unwrap();
            let mut response = Response { status, headers: vec![], body: vec![] };
            loop {
                let line = self.line().await?;
                let Some((name, value)) = line.split_once(':') else { break };
                response.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            if status >= 200 {
                response.body = self.body(&response).await?;
                return Some(response);
            }
        }
    }

    /// Waits for the interim answer (100) to a request with `Expect: 100-continue`, which comes when
    /// the peer begins to read the body.
    pub(crate) async fn interim(&mut self) {
        let line = tokio::time::timeout(LIMIT, self.line()).await.expect("an answer in time");
        assert!(line.as_deref().is_some_and(|line| line.contains(" 100 ")), "{line:?}");
        assert_eq!(self.line().await.as_deref(), Some(""));
    }

    /// True once the peer has closed the connection with nothing more to say.
    pub(crate) async fn is_closed_by_peer(&mut self) -> bool {
        matches!(self.stream.fill_buf().await, Ok([]) | Err(_))
    }

    async fn body(&mut self, response: &Response) -> Option<Vec<u8>> {
        let mut body = vec![];
        if response.status == 204 {
            return Some(body);
        }
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(self.line().await?.trim(), 16).unwrap();
                let start = body.len();
                body.resize(start + size, 0);
                self.stream.read_exact(&mut body[start..]).await.ok()?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = response.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body).await.ok()?;
        } else {
            self.stream.read_to_end(&mut body).await.ok()?;
        }
        Some(body)
    }

    /// The next line without its end; `None` if there is no whole one.
    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.ok()?;
        line.strip_suffix("\r\n").map(str::to_owned)
    }
}

impl Response {
    /// The first header of this name, given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// The head of a request, for a test that sends it in pieces or leaves the body out.
pub(crate) fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{headers}\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Reads one request that ends with `ping`, then says these bytes and hangs up.
    async fn peer_that_says(answer: &'static str) -> (SocketAddr, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let peer = tokio::spawn(async move {
            let mut stream = listener.accept().await.unwrap().0;
            let mut request = vec![];
            while !request.trim_ascii_end().ends_with(b"ping") {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(request).unwrap()
        });
        (address, peer)
    }

    #[tokio::test]
    async fn answers_of_every_framing_are_read() {
        let cases = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-A: b\r\n\r\npong", 200, "pong"),
            ("HTTP/1.1 503 Not Now\r\nRetry-After: 1\r\n\r\nlater", 503, "later"),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 2\r\npo\r\n2\r\nng\r\n0\r\n\r\n",
                200,
                "pong",
            ),
        ];
        for (answer, status, body) in cases {
            let (address, peer) = peer_that_says(answer).await;
            let response = post(address, "/x", &[("X-Y", "z")], b"ping").await;
            assert_eq!(response.status, status);
            assert_eq!(response.body, body.as_bytes());
            let request = peer.await.unwrap();
            assert!(request.starts_with("POST /x HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("\r\nX-Y: z\r\n\r\nping"), "{request}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_and_its_end_is_seen() {
        let (address, _peer) = peer_that_says(
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
        )
        .await;
        let mut connection = Connection::open(address).await;
        connection.write(head("POST", "/", &[], 4).as_bytes()).await.unwrap();
        connection.write(b"ping").await.unwrap();
        assert_eq!(connection.response().await.unwrap().status, 204);
        let second = connection.response().await.unwrap();
        assert_eq!(second.json()["a"], 1);
        assert_eq!(second.header("content-length"), Some("7"));
        assert!(connection.is_closed_by_peer().await);
        assert!(connection.response().await.is_none());
    }

    #[tokio::test]
    async fn a_get_without_a_whole_answer_is_none() {
        let (address, _peer) =
            peer_that_says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npo").await;
        let mut connection = Connection::open(address).await;
        assert!(connection.request("POST", "/", &[], b"ping").await.is_none());
        let (address, _peer) = peer_that_says("HTTP/1.1 200 OK\r\n\r\n").await;
        assert_eq!(get(address, "/?ping", &[("X-End", "ping")]).await.status, 200);
    }
}
