//! The server's side of one connection.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::net::TcpStream;

use super::request::cut_off;

/// A socket with what has been read from it and not been used.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Arc<TcpStream>,
    buffer: BytesMut,
}

impl Wire {
    pub(super) fn new(stream: Arc<TcpStream>) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Reads what has come; `false` at the end of the stream or an error.
    pub(super) async fn read_more(&mut self) -> bool {
        loop {
            if self.stream.readable().await.is_err() {
                return false;
            }
            match self.stream.try_read_buf(&mut self.buffer) {
                Ok(count) => return count > 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
        }
    }

    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer
    }

    pub(super) fn take(&mut self, count: usize) -> BytesMut {
        self.buffer.split_to(count)
    }

    pub(super) async fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.read_more().await {
                return Err(cut_off());
            }
        }
        Ok(self.take(count).to_vec())
    }

    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes the close that follows a reset.
    pub(super) fn reset(&self) {
        reset(&self.stream);
    }
}

/// Makes the close that follows a reset. An error says that there is no connection any more.
pub(super) fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
