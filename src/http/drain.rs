//! An answer given before the whole request was read must reach the client.
//!
//! Closing a socket with unread bytes makes the kernel send a reset, and a client that is still
//! sending then reads "connection reset" instead of its 413 or 401. So a request body that a
//! handler leaves unread is read on and thrown away for a while (what nginx calls lingering
//! close). It costs no memory: each piece is dropped as it comes.
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::EXPECT;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Bytes read on at most: twice the default of the largest body, since a client that sends
/// somewhat too much is the one worth an answer.
const DRAIN_BYTES: u64 = 32 * 1024 * 1024;
/// Time spent on it at most.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A request body whose unread rest is drained in the background when it is dropped.
#[derive(Debug)]
pub(super) struct DrainedBody {
    /// `None` only after the drop took it.
    body: Option<Incoming>,
    /// The client waits for `100 Continue` before it sends, and reading would ask it to.
    client_waits: bool,
}

impl DrainedBody {
    /// Wraps the body of a request with these headers.
    pub(super) fn new(headers: &HeaderMap, body: Incoming) -> Self {
        Self { body: Some(body), client_waits: headers.contains_key(EXPECT) }
    }
}

impl Body for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.client_waits = false;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        // Without a runtime the process is ending, and the connection with it.
        if let (false, Ok(runtime)) = (self.client_waits, tokio::runtime::Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(DRAIN_TIME, drain(body)));
        }
    }
}

/// Reads until the end, an error (the connection is gone), or [`DRAIN_BYTES`].
async fn drain(mut body: Incoming) {
    let mut left = DRAIN_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
