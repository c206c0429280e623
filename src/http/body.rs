//! Reading a request body as bytes: whatever its content type, chunked or not, never
//! decompressed, and within three limits: its size, its time, and all bodies in flight together.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use thiserror::Error;

use super::problem::{Refusal, Unavailable};

/// Limits of one body; clones share the budget.
#[derive(Clone, Debug)]
pub struct BodyLimits {
    /// Bytes of one body.
    pub max_body: u64,
    /// From the end of the headers to the end of the body.
    pub body_timeout: Duration,
    /// Bytes of all bodies together; should be at least `max_body`, or a larger body can never
    /// be taken.
    pub budget: BodyBudget,
}

/// How many bytes of bodies may be in memory at once; clones share one budget.
///
/// A counter rather than a `tokio::sync::Semaphore`, because nobody ever waits for it, and a
/// semaphore takes no more than 4 GiB at a time.
#[derive(Clone, Debug)]
pub struct BodyBudget {
    free: Arc<AtomicU64>,
}

impl BodyBudget {
    /// A budget of this many bytes, all free.
    pub fn new(bytes: u64) -> Self {
        Self { free: Arc::new(AtomicU64::new(bytes)) }
    }

    /// Bytes that are free now.
    pub fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    fn guard(&self) -> BodyGuard {
        BodyGuard { budget: self.clone(), held: 0 }
    }
}

/// A share of a [`BodyBudget`], given back when it is dropped.
#[derive(Debug)]
pub struct BodyGuard {
    budget: BodyBudget,
    held: u64,
}

impl BodyGuard {
    /// Makes the share at least `bytes`.
    fn hold(&mut self, bytes: u64) -> Result<(), BodyError> {
        let more = bytes.saturating_sub(self.held);
        let take = |free: u64| free.checked_sub(more);
        match self.budget.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => self.held += more,
            Err(_) => return Err(BodyError::OverBudget),
        }
        Ok(())
    }
}

impl Drop for BodyGuard {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.held, Ordering::Relaxed);
    }
}

/// A whole body, and its share of the budget: to be kept as long as the bytes are.
#[derive(Debug)]
pub struct ReadBody {
    /// The bytes as they came.
    pub bytes: Bytes,
    /// Holds the share of the budget.
    pub guard: BodyGuard,
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Declared or found to be longer than this many bytes.
    #[error("the body is over {0} bytes")]
    TooLarge(u64),
    /// Not whole within the body timeout.
    #[error("the body did not arrive in time")]
    Timeout,
    /// No room in the budget now.
    #[error("too many bodies are in flight")]
    OverBudget,
    /// The client went away, or its framing is broken.
    #[error("the body broke off")]
    Broken,
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(limit) => Self::BodyTooLarge(limit),
            BodyError::Timeout => Self::BodyTimeout,
            BodyError::OverBudget => Self::Unavailable(Unavailable::TooManyBodies),
            BodyError::Broken => Self::BodyIncomplete,
        }
    }
}

/// Reads `body` whole. A declared length counts at once, against both limits; a chunked body
/// counts as it grows. After an error the rest is read on and thrown away for a while, so that the
/// client sees the refusal's answer, which closes the connection.
///
/// # Errors
/// See [`BodyError`].
pub async fn read_body(mut body: Body, limits: &BodyLimits) -> Result<ReadBody, BodyError> {
    let declared = body.size_hint().exact().unwrap_or(0);
    if declared > limits.max_body {
        return Err(BodyError::TooLarge(limits.max_body));
    }
    let mut guard = limits.budget.guard();
    guard.hold(declared)?;
    let read = read_frames(&mut body, declared, limits.max_body, &mut guard);
    let bytes =
        tokio::time::timeout(limits.body_timeout, read).await.map_err(|_| BodyError::Timeout)??;
    Ok(ReadBody { bytes, guard })
}

async fn read_frames(
    body: &mut Body,
    declared: u64,
    max_body: u64,
    guard: &mut BodyGuard,
) -> Result<Bytes, BodyError> {
    // A declared length is a promise only, so memory follows what really comes.
    let mut bytes = BytesMut::with_capacity(declared.min(FIRST_CAPACITY) as usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| BodyError::Broken)?;
        // Trailers are no part of the body.
        let Some(data) = frame.data_ref() else { continue };
        let length = (bytes.len() + data.len()) as u64;
        if length > max_body {
            return Err(BodyError::TooLarge(max_body));
        }
        guard.hold(length)?;
        bytes.extend_from_slice(data);
    }
    Ok(bytes.freeze())
}

/// Larger than nearly every delivery.
const FIRST_CAPACITY: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_body: u64, budget: u64) -> BodyLimits {
        let budget = BodyBudget::new(budget);
        BodyLimits { max_body, body_timeout: Duration::from_secs(60), budget }
    }

    fn chunks(texts: &'static [&'static str]) -> Body {
        let texts =
            texts.iter().map(|text| Ok::<_, std::io::Error>(Bytes::from_static(text.as_bytes())));
        Body::from_stream(futures_util::stream::iter(texts))
    }

    #[tokio::test]
    async fn a_body_holds_its_share_until_it_is_dropped() {
        let limits = limits(10, 10);
        let first = read_body(Body::from("seven b"), &limits).await.unwrap();
        assert_eq!(limits.budget.free(), 3);
        let second = read_body(chunks(&["ab", "cd"]), &limits).await.unwrap_err();
        assert_eq!(second, BodyError::OverBudget);
        let third = read_body(chunks(&["ab", "c"]), &limits).await.unwrap();
        assert_eq!(third.bytes, "abc");
        assert_eq!(limits.budget.free(), 0);
        drop((first, third));
        assert_eq!(limits.budget.free(), 10);
    }

    #[tokio::test]
    async fn the_size_limit_is_inclusive_and_gives_everything_back() {
        let limits = limits(4, 100);
        assert_eq!(read_body(Body::from("four"), &limits).await.unwrap().bytes, "four");
        assert_eq!(read_body(chunks(&["fo", "ur"]), &limits).await.unwrap().bytes, "four");
        for body in [Body::from("fives"), chunks(&["fiv", "es"])] {
            assert_eq!(read_body(body, &limits).await.unwrap_err(), BodyError::TooLarge(4));
        }
        assert_eq!(limits.budget.free(), 100);
    }
}
