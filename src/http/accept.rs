//! The next connection: when there is a place for it, and whatever failures lie before it.
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::telemetry::Lasting;

/// Pause after an accept that failed, since for want of file descriptors the next one fails, too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The places for connections, and whether their lack was told.
pub(super) struct Places {
    address: SocketAddr,
    max: usize,
    free: Arc<Semaphore>,
    lack: Lasting,
}

impl Places {
    pub(super) fn new(address: SocketAddr, max: usize) -> Self {
        let max = max.clamp(1, Semaphore::MAX_PERMITS);
        Self { address, max, free: Arc::new(Semaphore::new(max)), lack: Lasting::new() }
    }

    /// Waits for a free place; it is free again when the permit is dropped.
    pub(super) async fn take(&mut self) -> Option<OwnedSemaphorePermit> {
        let free = self.free.available_permits();
        if free == 0 {
            self.lack.begin(format_args!(
                "all {} connections of {} are taken: new ones wait (server.max_connections)",
                self.max, self.address
            ));
        } else if free > self.max / 10 {
            // Not at the first free place, or a full listener would log with every connection.
            self.lack.end(format_args!("{} has free connections again", self.address));
        }
        // `None` never comes, because the semaphore is never closed.
        self.free.clone().acquire_owned().await.ok()
    }
}

/// The next connection of `accept`, whatever failures lie between.
pub(super) async fn accept<F>(
    address: SocketAddr,
    failing: &Lasting,
    accept: impl Fn() -> F,
) -> (TcpStream, SocketAddr)
where
    F: Future<Output = io::Result<(TcpStream, SocketAddr)>>,
{
    loop {
        match accept().await {
            Ok(connection) => {
                failing.end(format_args!("{address} accepts connections again"));
                return connection;
            }
            // The fault of that one connection.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::ConnectionRefused
                ) => {}
            Err(error) => {
                failing.begin(format_args!(
                    "{address} cannot accept connections: {error}; trying on \
                     (too many open files: raise the limit of the process)"
                ));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn accepting_goes_on_after_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let failing = Lasting::new();
        // Out of files, then a connection that was aborted before it was accepted.
        let faults = Mutex::new(vec![
            io::ErrorKind::ConnectionAborted.into(),
            io::Error::from_raw_os_error(24),
        ]);
        let lasted = Mutex::new(Vec::new());
        let (_stream, peer) = accept(address, &failing, || {
            lasted.lock().unwrap().push(failing.is_lasting());
            let fault = faults.lock().unwrap().pop();
            let listener = &listener;
            async move {
                match fault {
                    Some(fault) => Err(fault),
                    None => listener.accept().await,
                }
            }
        })
        .await;
        assert_eq!(peer, client.local_addr().unwrap());
        assert_eq!(*lasted.lock().unwrap(), [false, true, true]);
        assert!(!failing.is_lasting());
    }
}
