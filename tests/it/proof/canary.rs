//! Secrets stay secret: canaries in every place where a secret is configured, then traffic that
//! succeeds, that fails, and that meets faults, and a look at everything that was written.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inboxd::config::{Config, Env};
use inboxd::receive::unifyport::endpoint::Endpoint;

use crate::support::delivery::{Delivery, message, now};
use crate::support::http::{get, post};
use crate::support::place::Place;
use crate::support::postgres;
use crate::support::process::{Gateway, Home};

const SIGNING: &str = "canary-of-the-signing-secret";
const PREVIOUS: &str = "canary-of-the-previous-secret";
const OPERATOR: &str = "canary-of-the-operator-token";
const WORKER: &str = "canary-of-the-worker-token";
const PASSWORD: &str = "canary-of-the-store-password";
const ALL: [&str; 5] = [SIGNING, PREVIOUS, OPERATOR, WORKER, PASSWORD];

const CONFIG: &str = "answer_timeout = \"2s\"
[[unifyport]]
name = \"main\"
secrets = [{ env = \"SIGNING\" }, { file = \"previous\" }]
[[token]]
name = \"ops\"
value = { env = \"OPERATOR\" }
role = \"operator\"
[[token]]
name = \"workers\"
value = { env = \"WORKER\" }
role = \"worker\"
";

/// That no canary stands in `bytes`, plain, in hex or in base64.
fn is_clean(what: &str, bytes: &[u8]) {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    for canary in ALL {
        // Of each alignment in base64, what does not depend on its neighbours.
        let base64 = |skip: usize| STANDARD.encode(&canary.as_bytes()[skip..skip + 21]);
        for shape in [canary.to_owned(), hex::encode(canary), base64(0), base64(1), base64(2)] {
            assert!(!has(shape.as_bytes()), "{canary} is in {what}");
        }
    }
}

fn place(url: &str) -> Place {
    let place = Place::on(url, CONFIG).env("SIGNING", SIGNING).env("OPERATOR", OPERATOR);
    std::fs::write(place.home.dir().join("previous"), PREVIOUS).unwrap();
    place.env("WORKER", WORKER).env("INBOXD_LOG", "trace")
}

/// Deliveries and calls, good and bad; every answer is looked at.
async fn traffic(gateway: &Gateway) -> Vec<u16> {
    let at = now().to_string();
    let good = Delivery::signed(SIGNING, &at, message("good")).with("X-Device-Event-Id", "good");
    let old = (now() - std::time::Duration::from_secs(1000)).to_string();
    let mut other = message("good");
    other.push(b'\n');
    let deliveries = [
        good.clone(),
        good.clone().with("Authorization", &format!("Bearer {OPERATOR}")),
        Delivery::signed(PREVIOUS, &at, "previous, and no JSON"),
        Delivery::signed(SIGNING, &at, other),
        Delivery::signed(SIGNING, &old, message("stale")),
        Delivery::signed("forged", &at, message("forged")),
        good.clone().without("X-Device-Signature"),
        // Somebody's token on the wrong listener, on its way to quarantine.
        good.clone()
            .without("X-Device-Signature")
            .with("Authorization", &format!("Bearer {OPERATOR}"))
            .with("Cookie", OPERATOR)
            .with("Proxy-Authorization", WORKER),
        good.to("/webhooks/unifyport/none"),
    ];
    let mut statuses = vec![];
    let mut look = |answer: crate::support::http::Response| {
        is_clean("an answer", format!("{answer:?}").as_bytes());
        is_clean("an answer's body", &answer.body);
        statuses.push(answer.status);
    };
    for delivery in deliveries {
        look(delivery.send(gateway.public).await);
    }
    for token in [OPERATOR, WORKER, "wrong"] {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", &*bearer), ("Content-Type", "application/json")];
        for path in ["/v1/events", "/v1/sources", "/readyz", "/v1/nothing", "/v1/events?a=b"] {
            look(get(gateway.private, path, &headers).await);
        }
        for body in [&b"{}"[..], b"{", b"{\"maxx\":1}"] {
            look(post(gateway.private, "/v1/consumers/default/claim", &headers, body).await);
            look(post(gateway.private, "/v1/consumers/none/ack", &headers, body).await);
        }
    }
    statuses
}

/// All that a directory holds.
fn files_are_clean(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.file_name() != "previous" {
            let name = entry.path().display().to_string();
            is_clean(&name, &std::fs::read(entry.path()).unwrap());
        }
    }
}

fn reload(gateway: &Gateway, place: &Place, config: &str, line: &str) {
    place.home.configure(config);
    gateway.signal(rustix::process::Signal::HUP);
    let limit = std::time::Duration::from_secs(20);
    gateway.log().wait_for(limit, |text| text.contains(line).then_some(()));
}

#[tokio::test]
async fn no_secret_is_written_anywhere_on_sqlite() {
    let home = crate::support::test_dir::TestDir::new("canary");
    let file = home.join("inboxd.db");
    let place = place(&format!("sqlite:{}", file.display()));
    let gateway = place.start();
    let statuses = traffic(&gateway).await;
    for status in [200, 204, 400, 401, 403, 404, 422] {
        assert!(statuses.contains(&status), "no {status} in {statuses:?}");
    }
    let lock = crate::support::disk::SqliteLock::hold(&file, crate::support::disk::Lock::Exclusive);
    let answer = Delivery::signed(SIGNING, &now().to_string(), "locked").send(gateway.public).await;
    assert_eq!(answer.status, 503);
    lock.release();
    reload(&gateway, &place, &format!("tolerance = 1\n{CONFIG}"), "nothing is changed");
    reload(&gateway, &place, CONFIG, "is in force");
    files_are_clean(home.path());
    files_are_clean(place.home.dir());
    let log = gateway.log().clone();
    gateway.terminate();
    files_are_clean(home.path());
    assert!(log.text().contains("delivery refused"), "the log is of the level debug at least");
    is_clean("the log", &log.bytes());
}

#[tokio::test]
async fn no_secret_is_written_anywhere_on_postgres() {
    let url = postgres::shared().create_database();
    let (_, database) = url.rsplit_once('/').unwrap();
    let with_password = url.replace("postgres@", &format!("postgres:{PASSWORD}@"));
    let place = place(&with_password);
    let gateway = place.start();
    let statuses = traffic(&gateway).await;
    assert!(statuses.contains(&204), "{statuses:?}");

    let tables = "SELECT table_name FROM information_schema.tables
         WHERE table_schema = current_schema()";
    let tables = postgres::shared().sql(database, tables);
    assert!(tables.lines().count() > 5, "{tables}");
    for table in tables.lines() {
        let rows = postgres::shared().sql(database, &format!("SELECT * FROM \"{table}\""));
        is_clean(table, rows.as_bytes());
    }

    // The database is away, for the gateway that runs and for one that would start.
    let cut = format!(
        "ALTER DATABASE {database} ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
    );
    for statement in cut.split(';') {
        postgres::shared().sql("postgres", statement);
    }
    let statuses = traffic(&gateway).await;
    assert!(statuses.contains(&503) && !statuses.contains(&204), "{statuses:?}");
    for command in ["serve", "check", "migrate"] {
        refuses("a store that is away", &place.home, &[command]);
    }
    let log = gateway.log().clone();
    gateway.terminate();
    is_clean("the log", &log.bytes());
}

/// Runs a command that must fail; nothing that it writes holds a canary.
fn refuses(what: &str, home: &Home, arguments: &[&str]) -> String {
    // Bounded, because a gateway that starts all the same would run for ever.
    let command = home.command(arguments);
    let mut bounded = std::process::Command::new("timeout");
    bounded.arg("60").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    let output = bounded.current_dir(home.dir()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{what}: {output:?}");
    let words = [output.stdout, output.stderr].concat();
    is_clean(what, &words);
    String::from_utf8_lossy(&words).into_owned()
}

#[test]
fn no_secret_is_written_about_a_config_that_is_wrong() {
    let endpoint = "[[unifyport]]\nname = \"main\"\nsecrets = ";
    let token = "[[token]]\nname = \"t\"\nrole = \"operator\"\nvalue = ";
    let cases = [
        format!("{endpoint}[\"{SIGNING}\"]"),
        format!("{endpoint}\"{SIGNING}\""),
        format!("{endpoint}[{{ value = \"{SIGNING}\" }}]"),
        format!("{endpoint}[{{ env = \"NOT_SET\" }}]\n{token}\"{OPERATOR}\""),
        format!("{endpoint}[{{ file = \"missing\" }}]\n{token}{{ env = \"SPACED\" }}"),
        format!("{endpoint}[{{ env = \"SIGNING\" }}"),
        format!("[store]\nurl = \"postgres://user:{PASSWORD}@127.0.0.1/db\"\n{endpoint}[]"),
        format!("[store]\nurl = \"mysql://user:{PASSWORD}@127.0.0.1/db\"\n{endpoint}[]"),
        format!("[store]\nurl = \"postgres://user:{PASSWORD}@127.0.0.1:port/db\"\n{endpoint}[]"),
        format!("[store]\npassword = \"{PASSWORD}\"\n{endpoint}[{{ env = \"SIGNING\" }}]"),
        format!("[store]\nurl = {{ env = \"URL\" }}\n{endpoint}[{{ env = \"SIGNING\" }}]"),
    ];
    for case in cases {
        let home = Home::new(&case)
            .env("SIGNING", SIGNING)
            .env("SPACED", &format!("{OPERATOR} {WORKER}"))
            .env("URL", &format!("postgres://u:{PASSWORD}@127.0.0.1:1/db?sslmode=odd"))
            .env("INBOXD_LOG", "trace");
        for command in ["serve", "check"] {
            let words = refuses(&case, &home, &[command]);
            assert!(!words.is_empty());
        }
    }
}

#[test]
fn no_secret_is_in_what_debug_shows() {
    let text = format!("[server]\n{CONFIG}[store]\nurl = {{ env = \"URL\" }}\n");
    let dir = crate::support::test_dir::TestDir::new("canary");
    let file = dir.join("inboxd.toml");
    std::fs::write(dir.join("previous"), PREVIOUS).unwrap();
    std::fs::write(&file, text).unwrap();
    let url = format!("postgres://user:{PASSWORD}@127.0.0.1/db");
    let env = Env::from([
        ("SIGNING", SIGNING),
        ("OPERATOR", OPERATOR),
        ("WORKER", WORKER),
        ("URL", &*url),
    ]);
    let config = Config::load(Some(&file), &env).unwrap();
    is_clean("Debug of the config", format!("{config:?} {config:#?}").as_bytes());
    is_clean("the store's name", config.store.url.display().to_string().as_bytes());
    let endpoint = Endpoint {
        name: "main".to_owned(),
        source: inboxd::event::SourceId(1),
        secrets: config.unifyport[0].secrets.clone(),
        tolerance: config.unifyport[0].tolerance,
        accept_stale: None,
    };
    is_clean("Debug of an endpoint", format!("{endpoint:?} {endpoint:#?}").as_bytes());
    is_clean("Debug of the environment", format!("{env:?}").as_bytes());
}
