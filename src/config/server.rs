//! `[server]`: the two listeners and their limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::names::quote;
use super::node::Node;
use super::read::Table;
use super::units::format_size;

/// Largest body that can be allowed, because both stores refuse a value of about a gigabyte, and
/// a body that no store can hold would be answered 503 for ever.
const LARGEST_BODY: u64 = 512 << 20;

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where webhooks arrive: the listener to expose. `127.0.0.1:8080`.
    pub public: SocketAddr,
    /// Where workers, operators and metrics are served: the listener to keep inside.
    /// `127.0.0.1:8081`. A loopback address if there is no token.
    pub private: SocketAddr,
    /// Largest body of one request in bytes, up to 512 MiB. 16 MiB.
    pub max_body: usize,
    /// Largest sum of all bodies in flight in bytes, at least `max_body`. 256 MiB.
    pub max_bodies: usize,
    /// Longest time from a connection's readiness to the end of a request's headers. 10 s.
    pub header_timeout: Duration,
    /// Longest time for a body to arrive. 30 s.
    pub body_timeout: Duration,
    /// Longest time from the end of a delivery to its commit; after it the answer is 503. 10 s.
    pub answer_timeout: Duration,
    /// Most connections open at once, at least 1, for each listener. 10000.
    pub max_connections: usize,
    /// Longest time that a shutdown waits for requests in flight; zero does not wait. 20 s.
    pub shutdown_grace: Duration,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            public: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            private: SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)),
            max_body: 16 << 20,
            max_bodies: 256 << 20,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(10),
            max_connections: 10_000,
            shutdown_grace: Duration::from_secs(20),
        }
    }
}

/// Reads the table, and checks it against `open`: whether there is no token, so that the private
/// listener asks for none.
pub(super) fn read(mut table: Table<'_>, open: bool) -> Server {
    let default = Server::default();
    let over_zero = Node::duration_over_zero;
    let server = Server {
        public: table.or("public", default.public, address),
        private: table.or("private", default.private, address),
        max_body: table.or("max_body", default.max_body, body),
        max_bodies: table.or("max_bodies", default.max_bodies, |node| bytes(node.size()?)),
        header_timeout: table.or("header_timeout", default.header_timeout, over_zero),
        body_timeout: table.or("body_timeout", default.body_timeout, over_zero),
        answer_timeout: table.or("answer_timeout", default.answer_timeout, over_zero),
        max_connections: table.or("max_connections", default.max_connections, |node| {
            bytes(node.number_within(1, 1_000_000)?)
        }),
        shutdown_grace: table.or("shutdown_grace", default.shutdown_grace, Node::duration),
    };
    if server.max_bodies < server.max_body {
        let place = table.place_of("max_bodies");
        table.reader.fault(
            place,
            format!(
                "all bodies together are allowed less than one, max_body = \"{0}\"; write at \
                 least \"{0}\", or lower max_body",
                format_size(server.max_body as u64)
            ),
        );
    }
    if server.public == server.private && server.public.port() != 0 {
        let place = table.place_of("private");
        table.reader.fault(place, "the same address as public; give it another port");
    }
    if open && !server.private.ip().to_canonical().is_loopback() {
        let place = table.place_of("private");
        table.reader.fault(
            place,
            format!(
                "without a token the private listener is open, and {} is not a loopback address; \
                 add a [[token]], set INBOXD_TOKEN, or write \"127.0.0.1:{}\"",
                server.private,
                server.private.port()
            ),
        );
    }
    table.finish();
    server
}

/// An IP address with a port, or `localhost` with a port. Other names are not resolved, because
/// what a listener binds to must not depend on a name server.
fn address(node: &Node<'_>) -> Result<SocketAddr, String> {
    const LIKE: &str = "\"127.0.0.1:8080\", \"[::1]:8080\" or \"localhost:8080\"";
    let text = node.text(LIKE)?;
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok());
    if let Some(port) = local {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| {
        format!("{} is not an IP address with a port; write it like {LIKE}", quote(text))
    })
}

fn body(node: &Node<'_>) -> Result<usize, String> {
    match node.size()? {
        size if size <= LARGEST_BODY => bytes(size),
        size => Err(format!(
            "\"{}\" is more than a store can hold; write at most \"{}\"",
            format_size(size),
            format_size(LARGEST_BODY)
        )),
    }
}

fn bytes(number: u64) -> Result<usize, String> {
    usize::try_from(number).map_err(|_| "this is more than the machine can address".to_owned())
}
