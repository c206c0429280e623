//! A wire between a gateway and PostgreSQL that a test can hold up or cut at an exact place: after
//! the server has committed and before the gateway has heard of it.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What becomes of the server's word that it has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It is never delivered.
    Withhold,
    /// The connection breaks instead.
    Cut,
}

/// The simple query by which the gateway commits. Source: PostgreSQL's documentation, "Frontend/
/// Backend Protocol": type, length with itself, text with a zero at its end.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

pub(super) struct Wire {
    /// What the gateway connects to.
    pub(super) url: String,
    order: Arc<Mutex<Option<Order>>>,
    committed: Arc<Semaphore>,
}

#[derive(Clone)]
struct Order {
    marker: Vec<u8>,
    then: Then,
}

impl Wire {
    /// A wire to the database of that URL, which passes everything on.
    pub(super) async fn to(url: &str) -> Wire {
        let (server, database) = url.split_once('@').unwrap().1.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Wire {
            url: format!("postgres://postgres@{address}/{database}"),
            order: Arc::default(),
            committed: Arc::new(Semaphore::new(0)),
        };
        let (server, order) = (server.to_owned(), wire.order.clone());
        let committed = wire.committed.clone();
        tokio::spawn(async move {
            loop {
                let (gateway, _) = listener.accept().await.unwrap();
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                tokio::spawn(pass(gateway, server, order.clone(), committed.clone()));
            }
        });
        wire
    }

    /// From now on watches for a transaction that carries `marker`, and does this at its commit,
    /// once.
    pub(super) fn at_commit_of(&self, marker: &[u8], then: Then) {
        *self.order.lock().unwrap() = Some(Order { marker: marker.to_owned(), then });
    }

    /// Waits until the server has committed it.
    pub(super) async fn committed(&self) {
        self.committed.acquire().await.unwrap().forget();
    }
}

/// Passes on what comes from either side, until either ends or the order says so.
async fn pass(
    gateway: TcpStream,
    server: TcpStream,
    order: Arc<Mutex<Option<Order>>>,
    committed: Arc<Semaphore>,
) {
    gateway.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_gateway, to_gateway) = gateway.into_split();
    let (from_server, to_server) = server.into_split();
    let caught = Arc::new(Mutex::new(None));
    tokio::select! {
        () = questions(from_gateway, to_server, &order, &caught) => {}
        () = answers(from_server, to_gateway, &caught, &committed) => {}
    }
}

async fn questions(
    mut gateway: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    order: &Mutex<Option<Order>>,
    caught: &Mutex<Option<Then>>,
) {
    let mut seen: Vec<u8> = vec![];
    let mut bytes = vec![];
    while matches!(gateway.read_buf(&mut bytes).await, Ok(1..)) {
        {
            let mut order = order.lock().unwrap();
            if let Some(Order { marker, then }) = order.clone() {
                seen.extend_from_slice(&bytes);
                let begun = position(&seen, &marker);
                if begun.is_some_and(|begun| position(&seen[begun..], COMMIT).is_some()) {
                    // Before the server learns of it, because its answer must not slip through.
                    *caught.lock().unwrap() = Some(then);
                    *order = None;
                }
            }
        }
        if server.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

async fn answers(
    mut server: OwnedReadHalf,
    mut gateway: OwnedWriteHalf,
    caught: &Mutex<Option<Then>>,
    committed: &Semaphore,
) {
    let mut bytes = vec![];
    while matches!(server.read_buf(&mut bytes).await, Ok(1..)) {
        let then = *caught.lock().unwrap();
        match then {
            None if gateway.write_all(&bytes).await.is_err() => return,
            None => {}
            Some(Then::Withhold) => committed.add_permits(1),
            Some(Then::Cut) => return committed.add_permits(1),
        }
        bytes.clear();
    }
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
