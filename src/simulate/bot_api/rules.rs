//! The server's numbers: its durations ([`Timing`]) and its limits ([`Limits`]).
//!
//! Source: `Client.cpp`, `Client.h` of `tdlib/telegram-bot-api` 10.0 and `TQueue.cpp` of
//! `tdlib/td`.

/// A moment or a duration in the server's own seconds: seconds since the fake started, of which
/// one lasts [`Timing::scale`] real seconds.
pub type Seconds = f64;

/// Every duration in the server's rules.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Real seconds in one of the server's seconds; 1.0 is real time. The `timeout` of a request
    /// is scaled too, so a 50 s poll lasts one real second at 0.02.
    pub scale: f64,
    /// The longest a request is held, whatever its `timeout` says.
    pub hold_max: Seconds,
    /// A request that repeats the offset within this time of the previous start is throttled …
    pub same_offset_window: Seconds,
    /// … by raising a smaller `timeout` to this.
    pub same_offset_min_timeout: Seconds,
    /// A request that repeats the offset within this time gets one update at most.
    pub limit1_window: Seconds,
    /// The first 409 is immediate and opens this window …
    pub conflict_window: Seconds,
    /// … in which every further 409 is answered this much later.
    pub conflict_delay: Seconds,
    /// **Real** seconds from a push to the answer of a held request.
    pub wake_after: f64,
    /// **Real** seconds that further pushes can put that answer off, from the first push.
    pub wake_max: f64,
}

impl Timing {
    /// The official server's durations, at `scale` real seconds for each.
    pub fn scaled(scale: f64) -> Self {
        Self {
            scale,
            hold_max: 50.0,
            same_offset_window: 3.0,
            same_offset_min_timeout: 3.0,
            limit1_window: 0.5,
            conflict_window: 3.0,
            conflict_delay: 3.0,
            wake_after: 0.001,
            wake_max: 0.002,
        }
    }

    /// [`Timing::wake_after`] in the server's seconds.
    pub(super) fn wake_delay(&self) -> Seconds {
        self.wake_after / self.scale
    }

    /// [`Timing::wake_max`] in the server's seconds.
    pub(super) fn wake_limit(&self) -> Seconds {
        self.wake_max / self.scale
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::scaled(1.0)
    }
}

/// Every count and size in the server's rules.
#[derive(Clone, Debug)]
pub struct Limits {
    /// An offset this much above the next id still counts as a confirmation.
    pub id_tolerance: i32,
    /// An offset this much below the first queued id is still taken at its word.
    pub past_tolerance: i32,
    /// Updates in one queue; the newest is refused beyond it.
    pub max_events: usize,
    /// Bytes in one queue.
    pub max_queue_bytes: usize,
    /// Bytes in one update (`"kind":{…}`).
    pub max_event: usize,
    /// Bytes in one answer, counted as 50 and the update's length for each update.
    pub max_batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            id_tolerance: 10,
            past_tolerance: 100_000,
            max_events: 100_000,
            max_queue_bytes: 1 << 27,
            max_event: 1 << 19,
            max_batch_bytes: 1 << 22,
        }
    }
}

/// Ids are below this; a sequence that gets here loses its queue and starts anew.
pub const ID_END: i32 = 2_000_000_000;

/// The ids among which a queue without memory draws its first.
pub const FIRST_IDS: std::ops::RangeInclusive<i32> = 2_000_001..=1_000_000_000;
