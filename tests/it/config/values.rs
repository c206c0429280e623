//! What is read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use inboxd::config::{
    Config, Consumer, Database, Env, Ordering, Role, Secret, Stale, StoreUrl, Telegram, Token,
    UPDATE_KINDS, Unifyport, Updates,
};

use super::load;

#[test]
fn without_file_and_environment_there_are_the_defaults() {
    let config = Config::load(None, &Env::default()).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(load("", &[]).unwrap(), Config::default());
    assert_eq!(config.consumers, [Consumer::new("default")]);
    assert_eq!(config.store.url.database(), Database::Sqlite(Path::new("inboxd.db")));
}

#[test]
fn the_example_holds_every_default() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("inboxd.example.toml");
    let env = Env::from([
        ("SUPPORT_BOT_TOKEN", "7123456789:abc"),
        ("UNIFYPORT_SECRET", "new"),
        ("UNIFYPORT_SECRET_PREVIOUS", "old"),
        ("INBOXD_WORKER_TOKEN", "worker-token"),
    ]);
    let expected = Config {
        telegram: vec![Telegram::new("support", Secret::new("7123456789:abc"))],
        unifyport: vec![Unifyport::new("main", vec![Secret::new("new"), Secret::new("old")])],
        tokens: vec![Token {
            name: "crm-workers".to_owned(),
            value: Secret::new("worker-token"),
            role: Role::Worker { consumers: Some(vec!["default".to_owned()]) },
        }],
        ..Config::default()
    };
    assert_eq!(Config::load(Some(&example), &env).unwrap(), expected);
    // Complete: a key of any table that the example lacks would have to be taken out of this list.
    let text = std::fs::read_to_string(example).unwrap();
    let keys: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(" = ")?.0))
        .collect();
    assert_eq!(
        keys.join(" "),
        "public private max_body max_bodies header_timeout body_timeout answer_timeout \
         max_connections shutdown_grace url retention identity_retention allow_unsafe_durability \
         rows bytes name token api_url poll_timeout updates name secrets tolerance stale name \
         ordering lease max_attempts backoff filter name value role consumers"
    );
}

#[test]
fn every_value_is_read() {
    let config = load(
        r#"
        [server]
        public = "0.0.0.0:80"
        private = "localhost:0"
        max_body = "1KiB"
        max_bodies = "2KiB"
        header_timeout = "1s"
        body_timeout = "2s"
        answer_timeout = "3s"
        max_connections = 4
        shutdown_grace = "0s"
        [store]
        url = "postgres://me@db.example/inbox?sslmode=require"
        retention = "1d"
        identity_retention = "2d"
        allow_unsafe_durability = true
        [quarantine]
        rows = 0
        bytes = "1B"
        [[telegram]]
        name = "both"
        token = { env = "TOKEN" }
        api_url = "http://127.0.0.1:8085/local"
        poll_timeout = "1s"
        updates = ["message", "kind_of_tomorrow"]
        [[telegram]]
        name = "b"
        token = { env = "B" }
        updates = "default"
        [[unifyport]]
        name = "both"
        secrets = [{ env = "S" }, { file = "secret" }, { env = "S" }]
        tolerance = "1000d"
        stale = "accept"
        [[consumer]]
        name = "c"
        ordering = "none"
        lease = "12h"
        max_attempts = 1
        backoff = { first = "2s", max = "2s" }
        filter = { channels = ["telegram"], sources = ["gone"], types = ["telegram.message"] }
        [[token]]
        name = "w"
        value = { env = "S" }
        role = "worker"
        [[token]]
        name = "o"
        value = { env = "O" }
        role = "operator"
        "#,
        &[("B", "2:b"), ("O", "o")],
    )
    .unwrap();
    let server = &config.server;
    assert_eq!(server.public.to_string(), "0.0.0.0:80");
    assert_eq!(server.private.to_string(), "127.0.0.1:0");
    assert_eq!((server.max_body, server.max_bodies, server.max_connections), (1024, 2048, 4));
    assert_eq!(
        [server.header_timeout, server.body_timeout, server.answer_timeout, server.shutdown_grace],
        [1, 2, 3, 0].map(Duration::from_secs)
    );
    let store = &config.store;
    let url = "postgres://me@db.example/inbox?sslmode=require";
    assert_eq!(store.url.database(), Database::Postgres(url));
    assert_eq!(store.url.display(), "postgres://me@db.example/inbox");
    let day = Duration::from_secs(86_400);
    assert_eq!((store.retention, store.identity_retention), (day, 2 * day));
    assert!(store.allow_unsafe_durability);
    assert_eq!((config.quarantine.rows, config.quarantine.bytes), (0, 1));
    let [both, b] = config.telegram.as_slice() else { panic!("two bots") };
    assert_eq!(both.token.expose(), "1:abc");
    assert_eq!(both.api_url.as_str(), "http://127.0.0.1:8085/local");
    assert_eq!(both.poll_timeout, Duration::from_secs(1));
    assert_eq!(both.updates.allowed(), ["message", "kind_of_tomorrow"]);
    assert_eq!(b.updates, Updates::Default);
    assert!(b.updates.allowed().is_empty());
    assert_eq!(Updates::All.allowed(), UPDATE_KINDS);
    let [endpoint] = config.unifyport.as_slice() else { panic!("one endpoint") };
    let secrets: Vec<&str> = endpoint.secrets.iter().map(Secret::expose).collect();
    assert_eq!(secrets, ["s1", "from file", "s1"]);
    assert_eq!((endpoint.tolerance, endpoint.stale), (1000 * day, Stale::Accept));
    let [consumer] = config.consumers.as_slice() else { panic!("one consumer") };
    assert_eq!((consumer.ordering, consumer.lease), (Ordering::None, day / 2));
    assert_eq!(consumer.max_attempts, 1);
    assert_eq!(consumer.backoff.first, Duration::from_secs(2));
    assert_eq!(consumer.filter.sources, ["gone"]);
    let [worker, operator] = config.tokens.as_slice() else { panic!("two tokens") };
    assert_eq!(worker.role, Role::Worker { consumers: None });
    assert!(worker.role.permits_consumer("c") && operator.role.permits_consumer("c"));
    let limited = Role::Worker { consumers: Some(vec!["c".to_owned()]) };
    assert!(limited.permits_consumer("c") && !limited.permits_consumer("d"));
}

#[test]
fn urls_of_stores() {
    for (text, path) in [
        ("sqlite:a.db", "a.db"),
        ("sqlite:/var/a.db", "/var/a.db"),
        ("sqlite://a.db", "a.db"),
        ("sqlite:///var/a%20b.db", "/var/a%20b.db"),
    ] {
        let url = StoreUrl::parse(text).unwrap();
        assert_eq!(url.database(), Database::Sqlite(Path::new(path)));
        assert_eq!(url.display(), format!("sqlite:{path}"));
    }
    for (text, shown) in [
        ("postgresql://u:p%40@h/d", "postgresql://u@h/d"),
        ("postgres://u:p@ss@h/d", "postgres://u@h/d"),
        ("postgres:///d?host=/run/postgresql&user=u", "postgres:///d"),
        ("postgres://%2Frun%2Fpostgresql/d", "postgres://%2Frun%2Fpostgresql/d"),
    ] {
        let url = StoreUrl::parse(text).unwrap();
        assert_eq!(url.database(), Database::Postgres(text));
        assert_eq!(url.display(), shown);
    }
    for text in ["", "sqlite", "sqlite:", "postgres:db", "a.db", "postgres://u:1#CANARY@h/d"] {
        assert!(StoreUrl::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_file_is_that_of_the_flag_else_of_the_variable() {
    let env = Env::from([("INBOXD_CONFIG", "variable.toml")]);
    let flag = Path::new("flag.toml");
    assert_eq!(Config::find(Some(flag), &env), Some(PathBuf::from("flag.toml")));
    assert_eq!(Config::find(None, &env), Some(PathBuf::from("variable.toml")));
}
