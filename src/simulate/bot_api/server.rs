//! The listener and its connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::connection;
use super::shared::Shared;
use super::wire;

/// The port stays ours while nothing listens on it: this socket is bound and never listens, so a
/// connection is refused and no one else is given the port.
pub(super) struct Port {
    _reserved: TcpSocket,
    address: SocketAddr,
}

impl Port {
    /// Takes `port` on the loopback interface; 0 is any.
    pub(super) fn reserve(port: u16) -> io::Result<Self> {
        let reserved = socket()?;
        reserved.bind((Ipv4Addr::LOCALHOST, port).into())?;
        let address = reserved.local_addr()?;
        Ok(Self { _reserved: reserved, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        let socket = socket()?;
        socket.bind(self.address)?;
        socket.listen(128)
    }
}

/// Sockets that share an address, which only sockets of the same user with this option can.
fn socket() -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    Ok(socket)
}

/// Takes connections as long as they are wanted.
pub(super) async fn serve(shared: Arc<Shared>, port: Port, first: TcpListener) {
    let mut listener = Some(first);
    let mut wanted = shared.listen.subscribe();
    loop {
        let listens = *wanted.borrow_and_update();
        if listens && listener.is_none() {
            // The port is reserved, so this fails only for want of file descriptors; nothing
            // listens then, which is what a test sees.
            listener = port.listen().ok();
        } else if !listens {
            listener = None;
        }
        shared.listening.send_replace(listener.is_some());
        tokio::select! {
            stream = accept(listener.as_ref()) => take(&shared, stream),
            _ = wanted.changed() => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

fn take(shared: &Arc<Shared>, stream: io::Result<TcpStream>) {
    // An error concerns a connection that is gone already.
    let Ok(stream) = stream else { return };
    if shared.refuses(&stream) {
        return;
    }
    let _ = stream.set_nodelay(true);
    let stream = Arc::new(stream);
    let shared = Arc::clone(shared);
    let broken = shared.connections();
    shared.clone().tasks.spawn(async move {
        tokio::select! {
            () = connection::run(Arc::clone(&shared), Arc::clone(&stream)) => {}
            () = broken.cancelled() => wire::reset(&stream),
            () = shared.stop.cancelled() => {}
        }
    });
}
