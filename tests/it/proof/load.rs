//! Senders that deliver without a pause, each delivery several times at once, and remember what
//! they were promised: a 204 is a promise.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::condition::until;
use crate::support::delivery::Delivery;
use crate::support::http::post;
use crate::support::place::{Place, events};
use crate::support::process::Gateway;

const SENDERS: usize = 6;
/// How often each delivery is sent at the same time.
const COPIES: usize = 3;

/// What became of one delivery.
struct Sent {
    delivery: Delivery,
    promises: i64,
}

/// Senders at work.
pub(super) struct Load {
    shared: Arc<Shared>,
    address: watch::Sender<SocketAddr>,
    senders: JoinSet<()>,
}

struct Shared {
    next: AtomicU64,
    /// Answers by status; 0 stands for none.
    answers: watch::Sender<BTreeMap<u16, u64>>,
    sent: Mutex<BTreeMap<String, Sent>>,
    stop: CancellationToken,
}

impl Load {
    /// Begins to deliver to that address.
    pub(super) fn start(address: SocketAddr) -> Load {
        let shared = Arc::new(Shared {
            next: AtomicU64::new(0),
            answers: watch::Sender::default(),
            sent: Mutex::default(),
            stop: CancellationToken::new(),
        });
        let address = watch::Sender::new(address);
        let mut senders = JoinSet::new();
        for _ in 0..SENDERS {
            senders.spawn(send(shared.clone(), address.subscribe()));
        }
        Load { shared, address, senders }
    }

    /// From now on the gateway is there.
    pub(super) fn moves_to(&self, address: SocketAddr) {
        self.address.send_replace(address);
    }

    /// Waits until so many more answers of this status have come; 0 stands for none at all.
    pub(super) async fn answered(&self, status: u16, more: u64) {
        let mut answers = self.shared.answers.subscribe();
        let count = |answers: &BTreeMap<u16, u64>| answers.get(&status).copied().unwrap_or(0);
        let goal = count(&answers.borrow()) + more;
        let reached = answers.wait_for(|answers| count(answers) >= goal);
        let limit = std::time::Duration::from_secs(60);
        let reached = tokio::time::timeout(limit, reached).await.map(|answers| answers.is_ok());
        assert_eq!(reached, Ok(true), "no {more} answers {status}: {:?}", self.shared.answers);
    }

    /// Ends the senders, delivers once more what was never promised, and looks whether the inbox
    /// holds all of it, each event once and to the byte, and hands it out once.
    pub(super) async fn verify(mut self, place: &Place, gateway: &Gateway) {
        self.shared.stop.cancel();
        while let Some(sender) = self.senders.join_next().await {
            sender.unwrap();
        }
        let answers = self.shared.answers.borrow().clone();
        println!("answers by status, 0 for none: {answers:?}");
        let known = |status: &u16| matches!(status, 0 | 204 | 503);
        assert!(answers.keys().all(known), "no answer but 204 and 503: {answers:?}");
        let mut sent = std::mem::take(&mut *self.shared.sent.lock().unwrap());
        for sent in sent.values_mut().filter(|sent| sent.promises == 0) {
            until("what was not promised is taken now", async || {
                let status = sent.delivery.attempt(gateway.public).await;
                (status == Some(204)).then_some(())
            })
            .await;
            sent.promises = 1;
        }

        let store = place.store().await;
        assert_eq!(store.audit().await.unwrap(), Vec::<String>::new());
        let mut receipts = 0;
        let stored = events(store.as_ref()).await;
        assert_eq!(stored.len(), sent.len(), "each event once");
        for event in &stored {
            let sent = sent.remove(&event.attributes.external_id).expect("no event twice");
            assert!(event.body == sent.delivery.body, "the bytes of {event:?}");
            let detail = store.event(event.id).await.unwrap().unwrap();
            assert!(detail.receipts >= sent.promises, "{} receipts", detail.receipts);
            assert_eq!((detail.variants.len(), detail.work.len()), (0, 1));
            receipts += detail.receipts;
        }
        let source = &store.sources().await.unwrap()[0];
        let counted = (source.stored, source.duplicates, source.conflicts);
        let stored = i64::try_from(stored.len()).unwrap();
        assert_eq!(counted, (stored, receipts - stored, 0));
        handed_out_once(gateway, stored).await;
        store.close().await;
    }
}

async fn send(shared: Arc<Shared>, address: watch::Receiver<SocketAddr>) {
    while !shared.stop.is_cancelled() {
        let id = format!("{}-of-a-load", shared.next.fetch_add(1, Ordering::Relaxed));
        let delivery = Delivery::message(&id);
        let to = *address.borrow();
        let attempts = join_all((0..COPIES).map(|_| delivery.attempt(to))).await;
        let promises = attempts.iter().filter(|status| **status == Some(204)).count();
        let promises = i64::try_from(promises).unwrap();
        shared.sent.lock().unwrap().insert(id, Sent { delivery, promises });
        shared.answers.send_modify(|answers| {
            for status in &attempts {
                *answers.entry(status.unwrap_or(0)).or_default() += 1;
            }
        });
        if attempts.contains(&None) {
            // Nobody listens: look again in a moment, or a new address.
            let mut moved = address.clone();
            let pause = std::time::Duration::from_millis(20);
            let _ = tokio::time::timeout(pause, moved.changed()).await;
        }
    }
}

/// Claims and acks until nothing is left: so many deliveries, no event twice.
async fn handed_out_once(gateway: &Gateway, events: i64) {
    let mut seen = std::collections::BTreeSet::new();
    let json_type = [("Content-Type", "application/json")];
    loop {
        let claim =
            post(gateway.private, "/v1/consumers/default/claim", &json_type, br#"{"max":500}"#)
                .await;
        let claimed = claim.json()["deliveries"].as_array().unwrap().clone();
        if claimed.is_empty() {
            break;
        }
        let receipts: Vec<_> = claimed.iter().map(|delivery| &delivery["receipt"]).collect();
        let ack = json!({ "receipts": receipts }).to_string();
        let acked =
            post(gateway.private, "/v1/consumers/default/ack", &json_type, ack.as_bytes()).await;
        assert_eq!(acked.json()["done"].as_array().unwrap().len(), claimed.len());
        for delivery in &claimed {
            let id = delivery["event"]["externalid"].as_str().unwrap().to_owned();
            assert!(seen.insert(id), "handed out twice: {delivery}");
        }
    }
    assert_eq!(i64::try_from(seen.len()).unwrap(), events);
}
