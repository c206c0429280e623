//! PostgreSQL dies under load and comes back: 503 meanwhile, 204 again by itself, nothing lost.

use super::load::Load;
use crate::support::http::get;
use crate::support::place::{MAIN, Place};
use crate::support::postgres::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_killed_under_load_and_brought_back() {
    let mut cluster = Cluster::start_private(&[]);
    let place = Place::on(&cluster.create_database(), MAIN);
    let gateway = place.start();
    let load = Load::start(gateway.public);
    load.answered(204, 20).await;

    cluster.kill();
    // All three take as long as the store waits for a connection, so they wait together.
    let mut check = place.home.command(&["check"]);
    let check = tokio::task::spawn_blocking(move || check.output().unwrap());
    let ready = get(gateway.private, "/readyz", &[]);
    let (check, ready, ()) = tokio::join!(check, ready, load.answered(503, 1));
    let check = check.unwrap();
    assert_eq!(check.status.code(), Some(1));
    let words = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(words.contains("see that the server is up"), "{words}");
    assert_eq!(ready.status, 503);
    assert!(ready.header("retry-after").is_some());
    assert_eq!(get(gateway.private, "/healthz", &[]).await.status, 200);

    cluster.start();
    load.answered(204, 20).await;
    assert_eq!(get(gateway.private, "/readyz", &[]).await.status, 200);

    // An orderly stop, as for an upgrade.
    cluster.stop();
    load.answered(503, 1).await;
    cluster.start();
    load.answered(204, 20).await;
    load.verify(&place, &gateway).await;
    assert_eq!(gateway.terminate().code(), Some(0));
}
