//! Points at which a request stops until a test lets it go on, so that a process can be killed
//! exactly there.

use tokio::sync::watch;

use super::bot::RequestId;

/// Where a request stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It has arrived and nothing has been done with it.
    Received,
    /// It has been processed and nothing has been written.
    BeforeReply,
    /// Half of the body has been written.
    HalfBody,
    /// Everything has been written, and the connection does nothing more.
    FullBody,
    /// Everything has been written, and the bot's next request stops as it arrives, whatever
    /// connection it comes by.
    AfterReply,
}

/// The test's side of a stop. Dropped, it lets the request go on.
#[derive(Debug)]
pub struct Barrier {
    reached: watch::Receiver<Option<RequestId>>,
    release: watch::Sender<bool>,
}

/// The server's side of a stop.
#[derive(Clone, Debug)]
pub struct Arrival {
    point: Point,
    reached: watch::Sender<Option<RequestId>>,
    release: watch::Receiver<bool>,
}

/// Both sides of a stop.
pub fn barrier(point: Point) -> (Barrier, Arrival) {
    let (reached_sender, reached) = watch::channel(None);
    let (release, release_receiver) = watch::channel(false);
    let arrival = Arrival { point, reached: reached_sender, release: release_receiver };
    (Barrier { reached, release }, arrival)
}

impl Barrier {
    /// Waits until a request has stopped here. `None` if none ever will, because the fake has
    /// shut down or its faults were cleared.
    pub async fn reached(&self) -> Option<RequestId> {
        let mut reached = self.reached.clone();
        reached.wait_for(Option::is_some).await.ok().and_then(|request| *request)
    }

    /// Lets the request go on, now or when it comes.
    pub fn release(&self) {
        self.release.send_replace(true);
    }
}

impl Arrival {
    /// Where it stops.
    pub fn point(&self) -> Point {
        self.point
    }

    pub(super) fn reach(&self, request: RequestId) {
        self.reached.send_replace(Some(request));
    }

    pub(super) async fn released(&self) {
        // An error says that the test has dropped its side, which also lets the request go on.
        let _ = self.release.clone().wait_for(|released| *released).await;
    }
}
