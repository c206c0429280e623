//! The configuration: what it reads, every fault it finds, and that no secret is ever shown.

use std::path::{Path, PathBuf};
use std::time::Duration;

use inboxd::config::{
    Config, Consumer, Database, Env, Ordering, Role, Secret, Stale, StoreUrl, Telegram, Token,
    UPDATE_KINDS, Unifyport, Updates,
};

/// A secret that must never appear in a message.
const CANARY: &str = "CANARYcanary42";

/// Loads `toml` as the file `inboxd.toml` of a new folder; the faults as printed lines, with the
/// folder taken off.
fn load(toml: &str, env: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inboxd.toml");
    std::fs::write(&file, toml).unwrap();
    std::fs::write(folder.path().join("secret"), "from file\n").unwrap();
    let folder_name = format!("{}/", folder.path().display());
    Config::load(Some(&file), &variables(env))
        .map_err(|faults| faults.to_string().lines().map(|l| l.replace(&folder_name, "")).collect())
}

fn variables(env: &[(&str, &str)]) -> Env {
    env.iter()
        .copied()
        .chain([("S", "s1"), ("TOKEN", "1:abc"), ("EMPTY", ""), ("BLANK", " \n")])
        .collect()
}

/// The only fault of `toml`.
fn fault(toml: &str, env: &[(&str, &str)]) -> String {
    let faults = load(toml, env).expect_err(toml);
    assert_eq!(faults.len(), 1, "{toml}\n{faults:#?}");
    faults.into_iter().next().unwrap()
}

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

/// A table of each kind that has no fault.
const BOT: &str = "[[telegram]]\nname = \"b\"\ntoken = { env = \"TOKEN\" }\n";
const ENDPOINT: &str = "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"S\" }]\n";
const CONSUMER: &str = "[[consumer]]\nname = \"c\"\n";
const WORKER: &str = "[[token]]\nname = \"t\"\nvalue = { env = \"S\" }\nrole = \"worker\"\n";

#[test]
fn each_fault_names_its_place_and_remedy() {
    let bad_secret = "a secret is never written in the file; put it in an environment variable and \
                      write { env = \"NAME\" }, or in a file and write { file = \"path\" }";
    let server = "[server]\n";
    let store = "[store]\n";
    let cases: &[(&str, &str, &str)] = &[
        // The file as a whole, and its tables.
        (
            "",
            "a = \n",
            "inboxd.toml:1 column 5: this is not TOML (string values must be quoted, \
          expected literal string); correct it",
        ),
        ("", "[servr]\n", "inboxd.toml:1 servr: unknown key \"servr\"; did you mean server?"),
        (
            "",
            "[[consumers]]\nname = \"a\"\n",
            "inboxd.toml:1 consumers: unknown key \"consumers\"; did you mean consumer?",
        ),
        (
            "",
            "[zebra]\n",
            "inboxd.toml:1 zebra: unknown key \"zebra\"; take it out; the keys here \
          are server, token, consumer, store, quarantine, telegram, unifyport",
        ),
        (
            "",
            "[telegram]\nname = \"a\"\n",
            "inboxd.toml:1 telegram: this is not a list of tables; \
          write [[telegram]], with two brackets",
        ),
        (
            "",
            "telegram = [1]\n",
            "inboxd.toml:1 telegram[0]: this is not a list of tables; \
          write [[telegram]], with two brackets",
        ),
        (
            "",
            "server = 1\n",
            "inboxd.toml:1 server: this is not a table; write [server], or \
          server = { ... }",
        ),
        (
            "",
            "[[server]]\n",
            "inboxd.toml:1 server: this is not a table; write [server], or \
          server = { ... }",
        ),
        // Addresses.
        (
            server,
            "public = \":8080\"",
            "inboxd.toml:2 server.public: \":8080\" is not an IP \
          address with a port; write it like \"127.0.0.1:8080\", \"[::1]:8080\" or \
          \"localhost:8080\"",
        ),
        (
            server,
            "private = \"gateway:1\"",
            "inboxd.toml:2 server.private: \"gateway:1\" is not an \
          IP address with a port; write it like \"127.0.0.1:8080\", \"[::1]:8080\" or \
          \"localhost:8080\"",
        ),
        (
            server,
            "private = 8081",
            "inboxd.toml:2 server.private: an integer is not a string; \
          write it like \"127.0.0.1:8080\", \"[::1]:8080\" or \"localhost:8080\"",
        ),
        (
            server,
            "private = \"127.0.0.1:8080\"",
            "inboxd.toml:2 server.private: the same address \
          as public; give it another port",
        ),
        (
            server,
            "private = \"0.0.0.0:8081\"",
            "inboxd.toml:2 server.private: without a token the \
          private listener is open, and 0.0.0.0:8081 is not a loopback address; add a [[token]], \
          set INBOXD_TOKEN, or write \"127.0.0.1:8081\"",
        ),
        // Sizes, numbers, durations, booleans.
        (
            server,
            "max_body = \"16 megs\"",
            "inboxd.toml:2 server.max_body: \"16 megs\" is not a \
          size; write it like \"16MiB\" or \"1000B\"",
        ),
        (
            server,
            "max_body = 16",
            "inboxd.toml:2 server.max_body: an integer is not a string; \
          write it like \"16MiB\"",
        ),
        (
            server,
            "max_body = \"0B\"",
            "inboxd.toml:2 server.max_body: this cannot be zero; write a \
          size like \"16MiB\"",
        ),
        (
            server,
            "max_body = \"1GiB\"\nmax_bodies = \"1GiB\"",
            "inboxd.toml:2 server.max_body: \
          \"1GiB\" is more than a store can hold; write at most \"512MiB\"",
        ),
        (
            server,
            "max_bodies = \"1MiB\"",
            "inboxd.toml:2 server.max_bodies: all bodies together \
          are allowed less than one, max_body = \"16MiB\"; write at least \"16MiB\", or lower \
          max_body",
        ),
        (
            server,
            "header_timeout = \"0s\"",
            "inboxd.toml:2 server.header_timeout: this cannot be \
          zero; write a time like \"30s\"",
        ),
        (
            server,
            "body_timeout = \"30\"",
            "inboxd.toml:2 server.body_timeout: \"30\" has no unit; \
          write \"30s\" for seconds, or use d, h, m or ms",
        ),
        (
            server,
            "answer_timeout = 10",
            "inboxd.toml:2 server.answer_timeout: an integer is not a \
          string; write it like \"5m\" or \"300s\"",
        ),
        (
            server,
            "max_connections = 0",
            "inboxd.toml:2 server.max_connections: 0 is out of range; \
          write from 1 to 1000000",
        ),
        (
            server,
            "max_connections = -1",
            "inboxd.toml:2 server.max_connections: -1 is out of \
          range; write from 1 to 1000000",
        ),
        (
            server,
            "max_connections = \"9\"",
            "inboxd.toml:2 server.max_connections: a string is not \
          a whole number; write it like 20",
        ),
        (
            server,
            "max_conections = 9",
            "inboxd.toml:2 server.max_conections: unknown key \
          \"max_conections\"; did you mean max_connections?",
        ),
        (
            store,
            "allow_unsafe_durability = 1",
            "inboxd.toml:2 store.allow_unsafe_durability: an \
          integer is neither true nor false; write one of them",
        ),
        (
            store,
            "retention = \"0s\"",
            "inboxd.toml:2 store.retention: this cannot be zero; write a \
          time like \"30s\"",
        ),
        (
            "[quarantine]\n",
            "rows = 1.5",
            "inboxd.toml:2 quarantine.rows: a float is not a whole \
          number; write it like 20",
        ),
        (
            "[quarantine]\n",
            "bytes = \"0B\"",
            "inboxd.toml:2 quarantine.bytes: this cannot be zero; \
          write a size like \"16MiB\"",
        ),
        // The URL of the store.
        (
            store,
            "url = \"mysql://host/db\"",
            "inboxd.toml:2 store.url: this is not the URL of a \
          store; write \"sqlite:inboxd.db\" or \"postgres://user@host/database\"",
        ),
        (
            store,
            "url = \"sqlite::memory:\"",
            "inboxd.toml:2 store.url: an inbox in memory would \
          lose every event; name a file, like \"sqlite:inboxd.db\"",
        ),
        (
            store,
            "url = \"sqlite:a.db?mode=rwc\"",
            "inboxd.toml:2 store.url: a SQLite URL takes no \
          parameters, because inboxd sets them itself; take out what begins at the question mark",
        ),
        (
            store,
            "url = \"postgres://u:CANARYcanary42@h/db\"",
            "inboxd.toml:2 store.url: a password \
          is never written in the file; put the whole URL in an environment variable and write \
          { env = \"NAME\" }, or set INBOXD_STORE_URL",
        ),
        (
            store,
            "url = \"postgres://u@h/db?password=CANARYcanary42\"",
            "inboxd.toml:2 store.url: a \
          password is never written in the file; put the whole URL in an environment variable and \
          write { env = \"NAME\" }, or set INBOXD_STORE_URL",
        ),
        (
            store,
            "url = \"postgres://u:12/CANARYcanary42@h/db\"",
            "inboxd.toml:2 store.url: this \
          URL has a part that no PostgreSQL URL has; write it like \
          \"postgres://user@host/database\", and a special character of a password as %XX",
        ),
        (
            store,
            "url = \"postgres://u:CANARYcanary42/x@h/db\"",
            "inboxd.toml:2 store.url: this is \
          not the URL of a PostgreSQL database (invalid port number); write it like \
          \"postgres://user@host/database\", and a special character of a password as %XX",
        ),
        (
            store,
            "url = { env = \"MISSING\" }",
            "inboxd.toml:2 store.url: the environment variable \
          MISSING is not set; set it",
        ),
        (
            store,
            "url = 5",
            "inboxd.toml:2 store.url: an integer is not a string; write it like \
          \"sqlite:inboxd.db\"",
        ),
        // Names.
        (
            "",
            "[[unifyport]]\nsecrets = [{ env = \"S\" }]",
            "inboxd.toml:1 unifyport[0]: name is \
          missing; give it one, like name = \"main\"",
        ),
        (
            "",
            "[[consumer]]\nname = \"My Shop\"",
            "inboxd.toml:2 consumer[0].name: \"My Shop\" is \
          not a name; write 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit",
        ),
        (
            CONSUMER,
            CONSUMER,
            "inboxd.toml:4 consumer[1].name: the name \"c\" is taken by \
          consumer[0]; give it another",
        ),
        (
            ENDPOINT,
            ENDPOINT,
            "inboxd.toml:5 unifyport[1].name: the name \"e\" is taken by \
          unifyport[0]; give it another",
        ),
        // Secrets.
        ("", "[[telegram]]\nname = \"b\"\ntoken = \"1:CANARYcanary42\"", bad_secret),
        (
            "",
            "[[telegram]]\nname = \"b\"",
            "inboxd.toml:1 telegram[0]: token is missing; write \
          token = { env = \"NAME\" }",
        ),
        (
            "",
            "[[telegram]]\nname = \"b\"\ntoken = { env = \"S\" }",
            "inboxd.toml:3 \
          telegram[0].token: this is not the token of a bot; give the whole token as BotFather \
          wrote it, like 123456789:AbC-dEf_123",
        ),
        (
            BOT,
            "[[telegram]]\nname = \"c\"\ntoken = { env = \"TOKEN\" }",
            "inboxd.toml:6 \
          telegram[1].token: the same token as telegram[0]; a bot has one table, so take one of \
          them out",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"",
            "inboxd.toml:1 unifyport[0]: secrets is missing; write \
          secrets = [{ env = \"NAME\" }], because nothing unsigned is ever accepted",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = []",
            "inboxd.toml:3 unifyport[0].secrets: \
          there is no secret; write secrets = [{ env = \"NAME\" }], because nothing unsigned is \
          ever accepted",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = { env = \"S\" }",
            "inboxd.toml:3 \
          unifyport[0].secrets: a table is not a list; write it like [{ env = \"NAME\" }]",
        ),
        ("", "[[unifyport]]\nname = \"e\"\nsecrets = [\n\"CANARYcanary42\"]", bad_secret),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"S\" },\n{ env = \"EMPTY\" }]",
            "inboxd.toml:4 unifyport[0].secrets[1]: the environment variable EMPTY is empty; put the \
          secret in it",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"BLANK\" }]",
            "inboxd.toml:3 \
          unifyport[0].secrets[0]: the environment variable BLANK is empty; put the secret in it",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"CANARYcanary42+\" }]",
            "inboxd.toml:3 unifyport[0].secrets[0]: what stands after env is not the name of an \
          environment variable; write the name, like { env = \"MY_SECRET\" }, and put the secret \
          in that variable",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"S\", file = \"f\" }]",
            "inboxd.toml:3 unifyport[0].secrets[0]: a secret has exactly one of the keys env and \
          file; write { env = \"NAME\" } or { file = \"path\" }",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = [{ value = \"CANARYcanary42\" }]",
            "inboxd.toml:3 unifyport[0].secrets[0]: unknown key \"value\" in a secret; write \
          { env = \"NAME\" } or { file = \"path\" }",
        ),
        (
            "",
            "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = 5 }]",
            "inboxd.toml:3 \
          unifyport[0].secrets[0]: a secret is named by a string; write { env = \"NAME\" } or \
          { file = \"path\" }",
        ),
        // Bots and endpoints.
        (
            BOT,
            "api_url = \"ftp://host\"",
            "inboxd.toml:4 telegram[0].api_url: this is not an http \
          or https URL; write it like \"https://api.telegram.org\"",
        ),
        (
            BOT,
            "api_url = \"https://u:CANARYcanary42@host\"",
            "inboxd.toml:4 telegram[0].api_url: \
          this URL holds credentials; take them out and write it like \
          \"https://api.telegram.org\"",
        ),
        (
            BOT,
            "api_url = \"https://host/?a=CANARYcanary42\"",
            "inboxd.toml:4 telegram[0].api_url: \
          this URL has a query or a fragment; write it like \"https://api.telegram.org\"",
        ),
        (
            BOT,
            "api_url = \"host\"",
            "inboxd.toml:4 telegram[0].api_url: this is not a URL \
          (relative URL without a base); write it like \"https://api.telegram.org\"",
        ),
        (
            BOT,
            "poll_timeout = \"51s\"",
            "inboxd.toml:4 telegram[0].poll_timeout: \"51s\" is out of \
          range; write from \"1s\" to \"50s\"",
        ),
        (
            BOT,
            "poll_timeout = \"1s500ms\"",
            "inboxd.toml:4 telegram[0].poll_timeout: Telegram \
          takes whole seconds only; write it like \"50s\"",
        ),
        (
            BOT,
            "updates = \"some\"",
            "inboxd.toml:4 telegram[0].updates: \"some\" is not known \
          here; write \"all\", \"default\" or [\"message\", \"callback_query\"]",
        ),
        (
            BOT,
            "updates = []",
            "inboxd.toml:4 telegram[0].updates: the list is empty; write \
          \"all\", \"default\" or [\"message\", \"callback_query\"]",
        ),
        (
            BOT,
            "updates = [\"all\"]",
            "inboxd.toml:4 telegram[0].updates: \"all\" stands alone; \
          write updates = \"all\"",
        ),
        (
            BOT,
            "updates = [\"mesage\"]",
            "inboxd.toml:4 telegram[0].updates: \"mesage\" is not a \
          kind of update; did you mean \"message\"?",
        ),
        (
            BOT,
            "updates = [\"New Kind\"]",
            "inboxd.toml:4 telegram[0].updates: \"New Kind\" is not \
          a kind of update; write it like \"message\"",
        ),
        (
            ENDPOINT,
            "tolerance = \"5 minutes\"",
            "inboxd.toml:4 unifyport[0].tolerance: \
          \"5 minutes\" is not a duration; write it like \"5m\" or \"300s\"",
        ),
        (
            ENDPOINT,
            "tolerance = \"0s\"",
            "inboxd.toml:4 unifyport[0].tolerance: this cannot be \
          zero; write a time like \"30s\"",
        ),
        (
            ENDPOINT,
            "tolerence = \"5m\"",
            "inboxd.toml:4 unifyport[0].tolerence: unknown key \
          \"tolerence\"; did you mean tolerance?",
        ),
        (
            ENDPOINT,
            "stale = \"keep\"",
            "inboxd.toml:4 unifyport[0].stale: \"keep\" is not known \
          here; write \"reject\" or \"accept\"",
        ),
        // Consumers.
        (
            CONSUMER,
            "ordering = \"strict\"",
            "inboxd.toml:3 consumer[0].ordering: \"strict\" is not \
          known here; write \"conversation\" or \"none\"",
        ),
        (
            CONSUMER,
            "lease = \"13h\"",
            "inboxd.toml:3 consumer[0].lease: \"13h\" is out of range; \
          write from \"1ms\" to \"12h\"",
        ),
        (
            CONSUMER,
            "max_attempts = 0",
            "inboxd.toml:3 consumer[0].max_attempts: 0 is out of range; \
          write from 1 to 1000000",
        ),
        (
            CONSUMER,
            "backoff = { first = \"1h\" }",
            "inboxd.toml:3 consumer[0].backoff.max: max is \
          shorter than first; write a max of at least first",
        ),
        (
            CONSUMER,
            "backoff = { last = \"1h\" }",
            "inboxd.toml:3 consumer[0].backoff.last: unknown \
          key \"last\"; take it out; the keys here are first, max",
        ),
        (
            CONSUMER,
            "backoff = \"1s\"",
            "inboxd.toml:3 consumer[0].backoff: this is not a table; \
          write [consumer[0].backoff], or backoff = { ... }",
        ),
        (
            CONSUMER,
            "filter = { types = [\"a\", \"\"] }",
            "inboxd.toml:3 consumer[0].filter.types[1]: \
          this is empty; take it out or fill it in",
        ),
        (
            CONSUMER,
            "filter = { types = \"a\" }",
            "inboxd.toml:3 consumer[0].filter.types: a string \
          is not a list; write it like [\"telegram.message\"]",
        ),
        // Tokens.
        (
            "",
            "[[token]]\nname = \"t\"\nvalue = { env = \"S\" }",
            "inboxd.toml:1 token[0]: role is \
          missing; write role = \"worker\" or \"operator\"",
        ),
        (
            WORKER,
            "consumers = [\"defualt\"]",
            "inboxd.toml:5 token[0].consumers: there is no \
          consumer \"defualt\"; did you mean \"default\"?",
        ),
        (
            WORKER,
            "consumers = [\"crm\"]",
            "inboxd.toml:5 token[0].consumers: there is no consumer \
          \"crm\"; add a [[consumer]] of that name, or use default",
        ),
        (
            WORKER,
            "consumers = []",
            "inboxd.toml:5 token[0].consumers: the list is empty; name a \
          consumer, or leave the key out for all",
        ),
        (
            "[[token]]\nname = \"t\"\nvalue = { env = \"S\" }\nrole = \"operator\"\n",
            "consumers = [\"default\"]",
            "inboxd.toml:5 token[0].consumers: an operator may call \
          every consumer; take this out, or write role = \"worker\"",
        ),
        (
            WORKER,
            "[[token]]\nname = \"u\"\nvalue = { env = \"S\" }\nrole = \"worker\"",
            "inboxd.toml:7 token[1].value: the same value as token[0]; give every token a value of \
          its own",
        ),
        (
            "",
            "[[token]]\nname = \"t\"\nvalue = { env = \"SPACED\" }\nrole = \"worker\"",
            "inboxd.toml:3 token[0].value: a token is sent in a header, and this one has white space \
          or other characters that cannot stand there; make one of letters and digits",
        ),
    ];
    for (before, toml, message) in cases {
        let toml = format!("{before}{toml}");
        let fault = fault(&toml, &[("SPACED", "CANARY canary42")]);
        assert!(fault.ends_with(message), "{toml}\n  is: {fault}\nnot: {message}");
        assert!(fault.starts_with("inboxd.toml:"), "{fault}");
        assert!(!fault.contains("CANARY"), "{fault}");
    }
}

#[test]
fn all_faults_are_reported_at_once_in_the_order_of_the_file() {
    let faults = load(
        r#"[server]
max_body = "big"
[[unifyport]]
name = "Main"
tolerance = "soon"
secrets = [{ env = "NO1" }, { env = "NO2" }]
colour = 1
[store]
url = "mysql:"
"#,
        &[("INBOXD_STORE_RETENTION", "long"), ("INBOXD_SERVER_PORT", "80")],
    )
    .unwrap_err();
    let places: Vec<&str> = faults.iter().map(|fault| fault.split_once(": ").unwrap().0).collect();
    assert_eq!(
        places,
        [
            "inboxd.toml:2 server.max_body",
            "inboxd.toml:4 unifyport[0].name",
            "inboxd.toml:5 unifyport[0].tolerance",
            "inboxd.toml:6 unifyport[0].secrets[0]",
            "inboxd.toml:6 unifyport[0].secrets[1]",
            "inboxd.toml:7 unifyport[0].colour",
            "inboxd.toml:9 store.url",
            "environment INBOXD_STORE_RETENTION",
            "environment INBOXD_SERVER_PORT",
        ]
    );
}

#[test]
fn broken_toml_tells_its_position_and_not_its_text() {
    for toml in [
        format!("[store]\nurl = {CANARY}\n"),
        format!("[store]\nurl = \"{CANARY}\n"),
        format!("[store]\nurl = \"\\{CANARY}\"\n"),
        format!("[store]\n{CANARY} {CANARY}\n"),
        format!("[store]\n{CANARY} = 1\n{CANARY} = 2\n"),
        format!("[store]\nurl = 'a' {CANARY}\n"),
        format!("[store]\nurl = 2026-{CANARY}\n"),
    ] {
        for fault in load(&toml, &[]).expect_err(&toml) {
            assert!(fault.contains("this is not TOML"), "{fault}");
            assert!(
                fault.starts_with("inboxd.toml:2 col") || fault.starts_with("inboxd.toml:3 col")
            );
            assert!(!fault.contains(CANARY), "{fault}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.toml");
    let message = Config::load(Some(&file), &Env::default()).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: the config file cannot be read (", file.display())));
    std::fs::write(&file, b"\xff").unwrap();
    assert!(Config::load(Some(&file), &Env::default()).is_err());
}

#[test]
fn one_trailing_line_break_is_no_part_of_a_secret_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inboxd.toml");
    let toml = "[[unifyport]]\nname = \"e\"\nsecrets = [{ file = \"secrets/one\" }]\n";
    std::fs::write(&file, toml).unwrap();
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    let load = |content: &[u8]| {
        std::fs::write(folder.path().join("secrets/one"), content).unwrap();
        Config::load(Some(&file), &Env::default())
            .map(|config| config.unifyport[0].secrets[0].expose().to_owned())
            .map_err(|faults| faults.to_string())
    };
    for (content, secret) in
        [("s", "s"), ("s\n", "s"), ("s\r\n", "s"), ("s\n\n", "s\n"), ("s\r", "s\r"), (" s ", " s ")]
    {
        assert_eq!(load(content.as_bytes()).unwrap(), secret);
    }
    for content in ["", "\n", "\r\n", "\n\n", "  \n"] {
        let fault = load(content.as_bytes()).unwrap_err();
        assert!(fault.ends_with("secrets/one\" is empty; put the secret in it"), "{fault}");
    }
    assert!(load(b"\xff").unwrap_err().ends_with("not UTF-8; a secret is text"));
    assert!(load(&[b'x'; 65_537]).unwrap_err().contains("is over 64KiB"));
    std::fs::remove_file(folder.path().join("secrets/one")).unwrap();
    let fault = Config::load(Some(&file), &Env::default()).unwrap_err().to_string();
    assert!(fault.contains("secrets/one\" cannot be read ("), "{fault}");
}

#[test]
fn variables_override_single_values() {
    let env = [
        ("INBOXD_SERVER_PUBLIC", "0.0.0.0:1"),
        ("INBOXD_SERVER_MAX_CONNECTIONS", "7"),
        ("INBOXD_SERVER_BODY_TIMEOUT", "1m"),
        ("INBOXD_STORE_URL", "postgres://u:CANARYcanary42@h:1/d?sslmode=disable"),
        ("INBOXD_STORE_ALLOW_UNSAFE_DURABILITY", "true"),
    ];
    let toml = "[server]\npublic = \"127.0.0.1:9\"\nbody_timeout = \"2m\"\nmax_body = \"1KiB\"\n\
                [store]\nurl = { env = \"MISSING\" }\n";
    for config in [load(toml, &env).unwrap(), Config::load(None, &Env::from(env)).unwrap()] {
        assert_eq!(config.server.public.to_string(), "0.0.0.0:1");
        assert_eq!(config.server.max_connections, 7);
        assert_eq!(config.server.body_timeout, Duration::from_secs(60));
        assert!(config.store.allow_unsafe_durability);
        let url = "postgres://u:CANARYcanary42@h:1/d?sslmode=disable";
        assert_eq!(config.store.url.database(), Database::Postgres(url));
        assert_eq!(config.store.url.display(), "postgres://u@h:1/d");
        assert!(!format!("{config:?}").contains("CANARY"));
    }
    assert_eq!(load(toml, &env).unwrap().server.max_body, 1024);
}

#[test]
fn faults_of_variables_name_them() {
    for (name, value, message) in [
        (
            "INBOXD_SERVER_PRIVATE",
            "0.0.0.0:1",
            "without a token the private listener is open, and \
          0.0.0.0:1 is not a loopback address; add a [[token]], set INBOXD_TOKEN, or write \
          \"127.0.0.1:1\"",
        ),
        ("INBOXD_SERVER_MAX_BODY", "", "\"\" is not a size; write it like \"16MiB\" or \"1000B\""),
        (
            "INBOXD_SERVER_MAX_CONNECTIONS",
            "many",
            "\"many\" is not a whole number; write it like \
          20",
        ),
        (
            "INBOXD_STORE_ALLOW_UNSAFE_DURABILITY",
            "yes",
            "\"yes\" is neither true nor false; write \
          one of them",
        ),
        (
            "INBOXD_STORE_URL",
            "CANARYcanary42",
            "this is not the URL of a store; write \
          \"sqlite:inboxd.db\" or \"postgres://user@host/database\"",
        ),
        (
            "INBOXD_STORE_URL",
            "postgres://u@h/d?CANARYcanary42=1",
            "this URL has a parameter that \
          is not known; the known ones are sslmode, ssl-mode, sslrootcert, ssl-root-cert, ssl-ca, \
          sslcert, ssl-cert, sslkey, ssl-key, statement-cache-capacity, host, hostaddr, port, \
          dbname, user, password, application_name, options",
        ),
        (
            "INBOXD_STORE_RETENSION",
            "1d",
            "this variable overrides no key; did you mean \
          INBOXD_STORE_RETENTION?",
        ),
        (
            "INBOXD_STORE_X",
            "1d",
            "this variable overrides no key; unset it, or use one of \
          INBOXD_STORE_URL, INBOXD_STORE_RETENTION, INBOXD_STORE_IDENTITY_RETENTION, \
          INBOXD_STORE_ALLOW_UNSAFE_DURABILITY",
        ),
        (
            "INBOXD_TELEGRAM_TOKEN",
            "CANARYcanary42",
            "this is not the token of a bot; give the \
          whole token as BotFather wrote it, like 123456789:AbC-dEf_123",
        ),
        (
            "INBOXD_UNIFYPORT_SECRET",
            "",
            "the environment variable INBOXD_UNIFYPORT_SECRET is \
          empty; put the secret in it",
        ),
        (
            "INBOXD_TOKEN",
            "CANARY canary42",
            "a token is sent in a header, and this one has white \
          space or other characters that cannot stand there; make one of letters and digits",
        ),
    ] {
        let faults = Config::load(None, &Env::from([(name, value)])).unwrap_err().to_string();
        assert_eq!(faults, format!("environment {name}: {message}"));
    }
}

#[test]
fn a_password_in_the_file_is_a_fault_even_where_a_variable_overrides_it() {
    let toml = "[store]\nurl = \"postgres://u:CANARYcanary42@h/d\"\n";
    let fault = fault(toml, &[("INBOXD_STORE_URL", "sqlite:a.db")]);
    assert!(fault.starts_with("inboxd.toml:2 store.url: a password is never written"), "{fault}");
}

#[test]
fn a_variable_that_the_file_names_overrides_nothing() {
    let toml = "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"INBOXD_SERVER_SECRET\" }]\n";
    assert!(load(toml, &[("INBOXD_SERVER_SECRET", "s")]).is_ok());
}

const QUICK: [(&str, &str); 3] =
    [("INBOXD_TELEGRAM_TOKEN", "1:abc"), ("INBOXD_UNIFYPORT_SECRET", "s"), ("INBOXD_TOKEN", "t")];

#[test]
fn a_quick_start_needs_no_file() {
    let mut env: Vec<(&str, &str)> = QUICK.to_vec();
    env.push(("INBOXD_SERVER_PRIVATE", "0.0.0.0:8081"));
    let config = Config::load(None, &env.into_iter().collect()).unwrap();
    assert_eq!(config.telegram, [Telegram::new("telegram", Secret::new("1:abc"))]);
    assert_eq!(config.unifyport, [Unifyport::new("main", vec![Secret::new("s")])]);
    let operator = Token { name: "operator".into(), value: Secret::new("t"), role: Role::Operator };
    assert_eq!(config.tokens, [operator]);
}

#[test]
fn a_quick_start_works_beside_a_file() {
    let toml = format!("{ENDPOINT}{WORKER}");
    let config = load(&toml, &QUICK).unwrap();
    let names: Vec<&str> = config.unifyport.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["e", "main"]);
    assert_eq!(config.telegram.len(), 1);
    assert_eq!(config.tokens.len(), 2);
}

#[test]
fn a_quick_start_that_the_file_names_makes_nothing_more() {
    let toml = "[[telegram]]\nname = \"b\"\ntoken = { env = \"INBOXD_TELEGRAM_TOKEN\" }\n\
                [[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"INBOXD_UNIFYPORT_SECRET\" }]\n\
                [[token]]\nname = \"t\"\nvalue = { env = \"INBOXD_TOKEN\" }\nrole = \"worker\"\n";
    let config = load(toml, &QUICK).unwrap();
    assert_eq!((config.telegram.len(), config.unifyport.len(), config.tokens.len()), (1, 1, 1));
}

#[test]
fn a_quick_start_and_a_table_of_its_name_are_a_fault() {
    let faults = load(
        &format!("{BOT}{ENDPOINT}{WORKER}")
            .replace("\"b\"", "\"telegram\"")
            .replace("\"e\"", "\"main\"")
            .replace("\"t\"", "\"operator\""),
        &QUICK,
    )
    .unwrap_err();
    let expected = [
        ("INBOXD_TELEGRAM_TOKEN", "a bot named \"telegram\"", "token"),
        ("INBOXD_UNIFYPORT_SECRET", "an endpoint named \"main\"", "secrets"),
        ("INBOXD_TOKEN", "a token named \"operator\"", "value"),
    ]
    .map(|(variable, thing, key)| {
        format!(
            "environment {variable}: this variable makes {thing}, and the file has one too; unset \
             it, rename the file's, or name the variable at the file's {key} as {{ env = \
             \"{variable}\" }}"
        )
    });
    assert_eq!(faults, expected);
}

#[test]
fn a_quick_start_of_a_value_that_the_file_has_is_a_fault() {
    let faults = load(
        &format!("{BOT}{WORKER}"),
        &[("INBOXD_TELEGRAM_TOKEN", "1:abc"), ("INBOXD_TOKEN", "s1")],
    )
    .unwrap_err();
    assert_eq!(
        faults,
        [
            "environment INBOXD_TELEGRAM_TOKEN: this variable has the same value as the bot \"b\" \
             of the file; unset it",
            "environment INBOXD_TOKEN: this variable has the same value as the token \"t\" of the \
             file; unset it",
        ]
    );
}

#[test]
fn the_private_listener_may_leave_loopback_only_with_a_token() {
    for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1"]
    {
        load(&format!("[server]\nprivate = \"{address}\""), &[]).unwrap();
    }
    for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
        let toml = format!("[server]\nprivate = \"{address}\"\n");
        assert!(fault(&toml, &[]).contains("is not a loopback address"));
        load(&format!("{toml}{WORKER}"), &[]).unwrap();
    }
    // A variable that the file uses for something else is no token.
    let toml = "[server]\nprivate = \"0.0.0.0:1\"\n\
                [[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"INBOXD_TOKEN\" }]\n";
    assert!(fault(toml, &[("INBOXD_TOKEN", "t")]).contains("is not a loopback address"));
}

#[test]
fn no_debug_shows_a_secret() {
    let toml = "[[telegram]]\nname = \"b\"\ntoken = { env = \"B\" }\n\
                [[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"C\" }]\n\
                [[token]]\nname = \"t\"\nvalue = { env = \"C\" }\nrole = \"operator\"\n\
                [store]\nurl = { env = \"U\" }\n";
    let url = format!("postgres://u:{CANARY}@h/d?password={CANARY}");
    let bot = format!("1:{CANARY}");
    let env = [("B", bot.as_str()), ("C", CANARY), ("U", &url)];
    let config = load(toml, &env).unwrap();
    for text in [format!("{config:?}"), format!("{config:#?}"), format!("{:?}", Env::from(env))] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert_eq!(config.store.url.display(), "postgres://u@h/d");
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
