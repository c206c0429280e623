//! A fleet of workers that act, stall, give up, come late and die, at gateways that are killed
//! meanwhile; and an oracle outside that saw all of it: every event is finished exactly once, by
//! its last holder, each conversation in order.
//!
//! `INBOXD_FLEET_EVENTS` makes it longer, `INBOXD_FLEET_SEED` throws the same dice again.

mod end;
mod line;
mod oracle;
mod outside;
mod record;
mod sender;
mod verdict;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::place::{Kind, MAIN, Place};
use crate::support::process::Gateway;
use line::{Addresses, Gateways};
use oracle::Oracle;
use outside::Outside;
use sender::SENDERS;

/// On PostgreSQL fewer, because each of its transactions is a dozen round trips.
const EVENTS: [(Kind, usize); 2] = [(Kind::Sqlite, 2000), (Kind::Postgres, 1000)];
const WORKERS: usize = 20;
/// More than an event that can be worked on ever needs.
const MAX_ATTEMPTS: i64 = 30;
const CONSUMER: &str = "[[consumer]]
name = \"default\"
max_attempts = 30
backoff = { first = \"1ms\", max = \"20ms\" }
";

/// What the senders, the workers and the test share.
struct Fleet {
    events: usize,
    gateways: watch::Sender<Gateways>,
    oracle: Oracle,
    outside: Outside,
    healed: AtomicBool,
    stop: CancellationToken,
}

impl Fleet {
    /// Whether what was poison is none any more.
    fn is_healed(&self) -> bool {
        self.healed.load(Ordering::SeqCst)
    }
}

/// How a gateway is stopped.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Kill,
    Terminate,
}

/// When so many hundredths of the events are finished, a gateway is stopped and started again.
const STOPS: [(usize, Stop); 5] =
    [(10, Stop::Kill), (30, Stop::Kill), (45, Stop::Terminate), (60, Stop::Kill), (80, Stop::Kill)];

/// A gateway that is stopped and started again.
struct Node {
    place: Place,
    gateway: Option<Gateway>,
}

impl Node {
    fn start(place: Place) -> Node {
        let gateway = Some(place.start());
        Node { place, gateway }
    }

    fn addresses(&self) -> Option<Addresses> {
        let gateway = self.gateway.as_ref()?;
        Some(Addresses { public: gateway.public, private: gateway.private })
    }

    fn stop(&mut self, how: Stop) {
        let gateway = self.gateway.take().unwrap();
        let log = gateway.log().clone();
        match how {
            Stop::Kill => gateway.kill(),
            Stop::Terminate => assert_eq!(gateway.terminate().code(), Some(0)),
        }
        let text = log.text();
        let complaints: Vec<&str> =
            text.lines().filter(|line| line.contains("\"ERROR\"")).collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    fn restart(&mut self, how: Stop) {
        self.stop(how);
        self.gateway = Some(self.place.start());
    }
}

/// As many as the environment says under this name.
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

async fn finished_exactly_once(kind: Kind, gateways: usize) {
    let seed = from_environment("INBOXD_FLEET_SEED").unwrap_or_else(rand::random);
    let ordinary = EVENTS.iter().find(|(of, _)| *of == kind).unwrap().1;
    let events = from_environment("INBOXD_FLEET_EVENTS");
    let events = events.map_or(ordinary, |events| usize::try_from(events).unwrap());
    println!("INBOXD_FLEET_SEED={seed} INBOXD_FLEET_EVENTS={events}");
    let mut random = StdRng::seed_from_u64(seed);
    let config = format!("{MAIN}{CONSUMER}");
    let mut places = vec![Place::with(kind, &config)];
    for _ in 1..gateways {
        places.push(Place::on(&places[0].url, &config));
    }
    let mut nodes: Vec<Node> = places.into_iter().map(Node::start).collect();
    let addresses = |nodes: &[Node]| nodes.iter().map(Node::addresses).collect::<Gateways>();
    let fleet = Arc::new(Fleet {
        events,
        gateways: watch::Sender::new(addresses(&nodes)),
        oracle: Oracle::new(),
        outside: Outside::default(),
        healed: AtomicBool::new(false),
        stop: CancellationToken::new(),
    });
    let begin = Instant::now();
    let (mut senders, mut workers) = (JoinSet::new(), JoinSet::new());
    for first in 0..SENDERS {
        senders.spawn(sender::send(fleet.clone(), first, random.random()));
    }
    for _ in 0..WORKERS {
        workers.spawn(worker::work(fleet.clone(), random.random()));
    }
    for (number, (hundredths, how)) in STOPS.into_iter().enumerate() {
        fleet.oracle.finished(events * hundredths / 100).await;
        let node = number % nodes.len();
        // Nobody may find somebody else's gateway at an address that is free again.
        fleet.gateways.send_modify(|gateways| gateways[node] = None);
        block_in_place(|| nodes[node].restart(how));
        fleet.gateways.send_replace(addresses(&nodes));
    }
    let mut sent_again = 0;
    while let Some(again) = senders.join_next().await {
        sent_again += again.unwrap();
    }
    println!("sent after {:?}", begin.elapsed());
    end::worked_off(&fleet, &nodes[0].place).await;
    let worked = begin.elapsed();
    let dead = end::requeue_what_is_dead(&fleet, &nodes[0].place).await;
    fleet.stop.cancel();
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    println!("{:?}, {sent_again} sent again", fleet.oracle.tally());
    verdict::verify(&fleet, &nodes[0].place, kind, dead).await;
    nodes.iter_mut().for_each(|node| node.stop(Stop::Terminate));
    println!("worked off in {worked:?}, {:?} in all", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_exactly_once_on_sqlite() {
    finished_exactly_once(Kind::Sqlite, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_exactly_once_on_postgres() {
    finished_exactly_once(Kind::Postgres, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_exactly_once_at_two_gateways() {
    finished_exactly_once(Kind::Postgres, 2).await;
}
