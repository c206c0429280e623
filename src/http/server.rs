//! A listener that serves a router over HTTP/1.1 until the process ends.
//!
//! An accept loop of our own, because `axum::serve` sets no timer, so that hyper's header
//! timeout never fires, and its graceful shutdown waits for idle keep-alive connections.
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::accept::{Places, accept};
use super::drain::DrainedBody;
use super::problem::Refusal;
use super::stall::StallGuard;
use crate::shutdown::Shutdown;
use crate::telemetry::Lasting;

/// Limits of one listener.
#[derive(Clone, Debug)]
pub struct Limits {
    /// From the accept, or from the end of the answer before, to the end of a request's headers.
    /// So it is also how long an idle keep-alive connection stays open.
    pub header_timeout: Duration,
    /// How long the client may take nothing of an answer that waits to be sent.
    pub write_timeout: Duration,
    /// Connections open at once; further ones wait in the kernel's backlog.
    pub max_connections: usize,
    /// How long requests may take to finish after the soft stage of the shutdown.
    pub shutdown_grace: Duration,
}

/// Bytes of one request's head, and of one read. hyper's own default would let each connection
/// take 400 KiB.
const READ_BUFFER: usize = 64 * 1024;

/// Serves `router` on `listener`. Each request carries `ConnectInfo<SocketAddr>`, the peer.
///
/// At the soft stage it stops accepting, closes idle connections, and waits for the requests in
/// flight; after `shutdown_grace`, or at the hard stage, it drops the rest and returns. A handler
/// that panics is answered 500. Dropping the future drops all connections.
///
/// # Errors
/// The listener has no address, which means that it is broken.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let connections = TaskTracker::new();
    // Cancelled when this future ends, however that comes about.
    let cut = CancellationToken::new();
    let cut_at_end = cut.clone().drop_guard();

    let mut places = Places::new(address, limits.max_connections);
    let failing = Lasting::new();
    loop {
        let accepted = async {
            let place = places.take().await;
            (place, accept(address, &failing, || listener.accept()).await)
        };
        let (place, (stream, peer)) = tokio::select! {
            biased;
            () = shutdown.soft() => break,
            accepted = accepted => accepted,
        };
        let connection = serve_connection(
            stream,
            peer,
            router.clone(),
            limits.clone(),
            shutdown.clone(),
            cut.clone(),
        );
        connections.spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();

    tokio::select! {
        () = connections.wait() => return Ok(()),
        () = tokio::time::sleep(limits.shutdown_grace) => {}
        () = shutdown.hard() => {}
    }
    tracing::warn!(%address, "dropped {} connections that were not done", connections.len());
    drop(cut_at_end);
    connections.wait().await;
    Ok(())
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    limits: Limits,
    shutdown: Shutdown,
    cut: CancellationToken,
) {
    // Answers are small and waited for. Failing here means that the peer is gone, which the
    // first read finds out.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(router.clone(), peer, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(StallGuard::new(stream, limits.write_timeout)), service);
    let mut connection = std::pin::pin!(connection);

    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = cut.cancelled() => return,
        () = shutdown.soft() => {
            // Closes an idle connection at once, and any other after the answer under way.
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = cut.cancelled() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, "connection ended: {error}");
    }
}

/// Runs the router on one request; a panic in it is a 500, and the panic hook has logged it.
async fn answer(
    mut router: Router,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(ConnectInfo(peer));
    let body = Body::new(DrainedBody::new(&parts.headers, body));
    let request = Request::from_parts(parts, body);
    // Unwind safety: the router's clone is dropped, and what handlers share sits behind locks.
    let answered = AssertUnwindSafe(async move { router.call(request).await }).catch_unwind().await;
    Ok(match answered {
        Ok(Ok(response)) => response,
        Err(_panic) => Refusal::Internal.into_response(),
    })
}
