//! Overrides and quick starts: what comes from the environment alone.

use std::time::Duration;

use inboxd::config::{Config, Database, Env, Role, Secret, Telegram, Token, Unifyport};

use super::{BOT, ENDPOINT, WORKER, fault, load};

const QUICK: [(&str, &str); 3] =
    [("INBOXD_TELEGRAM_TOKEN", "1:abc"), ("INBOXD_UNIFYPORT_SECRET", "s"), ("INBOXD_TOKEN", "t")];

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
