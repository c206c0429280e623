//! SIGKILL at random moments under load. `INBOXD_KILLS` sets how many; the default keeps it short.

use std::time::Duration;

use super::load::Load;
use crate::support::place::{Kind, Place};

/// From a restart to the kill, at the most: some kills come before the first delivery.
const LONGEST_LIFE_MS: u64 = 300;

async fn every_204_survives(kind: Kind, kills: u32) {
    let kills = std::env::var("INBOXD_KILLS").map_or(kills, |kills| kills.parse().unwrap());
    let place = Place::new(kind);
    let mut gateway = place.start();
    let load = Load::start(gateway.public);
    load.answered(204, 20).await;
    for _ in 0..kills {
        // No wait for anything: the random moment is what is tested.
        let life = rand::random_range(0..LONGEST_LIFE_MS);
        tokio::time::sleep(Duration::from_millis(life)).await;
        gateway.kill();
        gateway = place.start();
        load.moves_to(gateway.public);
    }
    load.answered(204, 20).await;
    load.verify(&place, &gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_204_survives_on_sqlite() {
    every_204_survives(Kind::Sqlite, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_204_survives_on_postgres() {
    every_204_survives(Kind::Postgres, 2).await;
}
