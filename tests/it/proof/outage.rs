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
    load.answered(503, 20).await;
    let check = place.home.command(&["check"]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    let words = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(words.contains("see that the server is up"), "{words}");
    let ready = get(gateway.private, "/readyz", &[]).await;
    assert_eq!(ready.status, 503);
    assert!(ready.header("retry-after").is_some());
    assert_eq!(get(gateway.private, "/healthz", &[]).await.status, 200);

    cluster.start();
    load.answered(204, 20).await;
    assert_eq!(get(gateway.private, "/readyz", &[]).await.status, 200);

    // An orderly stop, as for an upgrade.
    cluster.stop();
    load.answered(503, 20).await;
    cluster.start();
    load.answered(204, 20).await;
    load.verify(&place, &gateway).await;
    assert_eq!(gateway.terminate().code(), Some(0));
}
