//! A queue with two bounds: how many wait, and how many bytes they hold.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes are counted in these, because a semaphore counts to 2^32 at a time.
const UNIT: usize = 1024;

/// The end that takes things in; clones share the bounds.
#[derive(Debug)]
pub(super) struct Queue<T> {
    sender: mpsc::Sender<Waiting<T>>,
    units: Arc<Semaphore>,
}

/// Something in the queue, with its share of the bytes until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub(super) item: T,
    pub(super) bytes: usize,
    _share: OwnedSemaphorePermit,
}

/// There is no room now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// A queue of at most `rows` things that hold at most `bytes`, and its other end. A single thing
/// larger than `bytes` never fits.
pub(super) fn bounded<T>(rows: usize, bytes: usize) -> (Queue<T>, mpsc::Receiver<Waiting<T>>) {
    let (sender, receiver) = mpsc::channel(rows);
    // Rounded as each thing is, so that one of exactly `bytes` fits.
    let units = bytes.div_ceil(UNIT).clamp(1, Semaphore::MAX_PERMITS);
    (Queue { sender, units: Arc::new(Semaphore::new(units)) }, receiver)
}

impl<T> Queue<T> {
    /// Puts `item` at the end, or says that there is no room.
    pub(super) fn push(&self, item: T, bytes: usize) -> Result<(), Full> {
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).map_err(|_| Full)?;
        let share = self.units.clone().try_acquire_many_owned(units).map_err(|_| Full)?;
        let waiting = Waiting { item, bytes, _share: share };
        self.sender.try_send(waiting).map_err(|_| Full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_bounds_hold_and_give_back() {
        let (queue, mut receiver) = bounded(2, 10 * UNIT);
        assert_eq!(queue.push("large", 11 * UNIT), Err(Full));
        queue.push("a", 5 * UNIT + 1).unwrap();
        assert_eq!(queue.push("b", 5 * UNIT), Err(Full), "bytes");
        queue.push("c", 10).unwrap();
        assert_eq!(queue.push("d", 10), Err(Full), "rows");
        assert_eq!(receiver.recv().await.unwrap().item, "a");
        queue.push("e", 5 * UNIT).unwrap();
    }

    #[tokio::test]
    async fn what_is_as_large_as_the_bound_fits() {
        for bytes in [1, UNIT, UNIT + 1, 10 * UNIT] {
            let (queue, _receiver) = bounded(2, bytes);
            assert_eq!(queue.push("all of it", bytes), Ok(()), "{bytes}");
        }
    }
}
