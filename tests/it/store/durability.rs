//! A PostgreSQL that may lose what it said it has committed is refused unless that is accepted.

use inboxd::clock::Clock;
use inboxd::source::SourceKind;
use inboxd::store::{Options, Store, StoreError, open};
use std::sync::Arc;

use crate::support::postgres::Cluster;

async fn opened(url: &str, allow_unsafe_durability: bool) -> Result<Arc<dyn Store>, StoreError> {
    let options = Options { migrate: true, allow_unsafe_durability, clock: Clock::wall() };
    open(url, options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_lose_commits_is_refused() {
    for (setting, named) in
        [("fsync", "fsync=off"), ("synchronous_commit", "synchronous_commit=off")]
    {
        let start = || Cluster::start_private(&[(setting, "off")]);
        let cluster = tokio::task::spawn_blocking(start).await.unwrap();
        let url = cluster.create_database();
        let Err(StoreError::Schema(words)) = opened(&url, false).await else {
            panic!("{setting}=off was not refused");
        };
        assert!(words.contains(named), "{words}");
        assert!(words.contains("allow_unsafe_durability = true"), "{words}");
        let store = opened(&url, true).await.unwrap();
        store.ready().await.unwrap();
        store.close().await;
    }
}

/// A role or database can turn it off where the server has it on.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_its_own_setting_is_refused_too() {
    let cluster = crate::support::postgres::shared();
    let url = cluster.create_database();
    let name = url.rsplit('/').next().unwrap();
    cluster.sql(name, &format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off"));
    assert!(matches!(opened(&url, false).await, Err(StoreError::Schema(_))));
}

/// A session that begins after that, for instance because the connection was lost, is durable.
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_is_turned_off_later_does_not_count() {
    let cluster = crate::support::postgres::shared();
    let url = cluster.create_database();
    let name = url.rsplit('/').next().unwrap();
    let store = opened(&url, false).await.unwrap();
    cluster.sql(name, &format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off"));
    cluster.sql(
        name,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('synchronous_commit') = 'off' THEN RAISE 'not durable'; END IF;
             RETURN NEW; END $$;
         CREATE TRIGGER durable BEFORE INSERT ON sources FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    cluster.sql(
        name,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'inboxd'",
    );
    store.register_source(SourceKind::UnifyPort, "main").await.unwrap();
    store.close().await;
}
