//! `unifyport sign`, `verify` and `send`.

use super::super::support::http::get;
use super::*;

#[derive(serde::Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(serde::Deserialize)]
struct Vector {
    name: String,
    secret: String,
    timestamp: String,
    body_hex: String,
    signature: String,
    valid: bool,
}

#[test]
fn the_published_vectors_are_signed_and_verified() {
    let vectors = include_str!("../vectors/unifyport-signature.json");
    let Vectors { vectors } = serde_json::from_str(vectors).unwrap();
    let home = Home::new("");
    std::fs::remove_file(home.dir().join("inboxd.toml")).unwrap();
    for Vector { name, secret, timestamp, body_hex, signature, valid } in vectors {
        let body = hex::decode(body_hex).unwrap();
        let options = ["--secret-env", "THE_SECRET", "--timestamp", &timestamp];
        let command = |command: &[&str]| {
            let mut command = home.command(&[&["unifyport"], command, &options].concat());
            command.env("THE_SECRET", &secret);
            run(&mut command, &body)
        };
        let verified = command(&["verify", "-", "--signature", &signature]);
        let signed = command(&["sign", "--event-id", "evt_1", "--json"]).json_lines().remove(0);
        assert_eq!(signed["X-Device-Timestamp"], *timestamp, "{name}");
        assert_eq!(signed["X-Device-Event-Id"], "evt_1", "{name}");
        let ours = signed["X-Device-Signature"].as_str().unwrap();
        assert_eq!(ours == signature.to_ascii_lowercase(), valid, "{name}");
        if valid {
            let text = verified.ok();
            assert!(
                text.starts_with(
                    "verified by the secret of the environment's THE_SECRET; its time is "
                ),
                "{text}"
            );
        } else {
            let error = verified.failed(1);
            assert!(error.starts_with("not verified: the signature "), "{name}: {error}");
        }
    }
}

#[tokio::test]
async fn what_is_signed_is_accepted_and_verifies() {
    let config =
        "[[unifyport]]\nname = \"main\"\nsecrets = [{ env = \"NEW\" }, { env = \"SECRET\" }]\n";
    let home = Home::new(config).env("SECRET", SECRET).env("NEW", "canary-signing-secret-2");
    let body = message("evt_1", "Ada", "Hi");
    std::fs::write(home.dir().join("body.json"), &body).unwrap();
    let sign = ["unifyport", "sign", "body.json", "--secret-env", "SECRET"];
    let headers = inboxd(&home, &sign).ok();
    let names: Vec<&str> = headers.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(
        names,
        ["Content-Type", "X-Device-Event-Id", "X-Device-Timestamp", "X-Device-Signature"]
    );
    assert!(headers.contains("X-Device-Event-Id: evt_1\n"), "{headers}");
    let value = |name: &str| headers.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let verify = |extra: &[&str]| {
        let (timestamp, signature) = (value("X-Device-Timestamp: "), value("X-Device-Signature: "));
        let verify = [
            "unifyport",
            "verify",
            "body.json",
            "--timestamp",
            timestamp,
            "--signature",
            signature,
        ];
        inboxd(&home, &[&verify, extra].concat())
    };
    let text = verify(&[]).ok();
    assert!(text.starts_with("verified by secret 2 of the endpoint main; its time is "), "{text}");
    let error = verify(&["--secret-env", "NEW"]).failed(1);
    assert!(error.contains("matches none of the secrets (1 secret of the environment's NEW)"));

    let gateway = home.start();
    let url = format!("http://{}/webhooks/unifyport/main", gateway.public);
    // The first secret of the configuration signs, and the event is the same by its own id.
    for extra in [&[][..], &["--secret-env", "SECRET"], &["--endpoint", "main"]] {
        let send = ["unifyport", "send", "body.json", "--url", &url];
        assert_eq!(inboxd(&home, &[&send, extra].concat()).ok(), "204 No Content\n");
    }
    let events = get(gateway.private, "/v1/events", &[]).await.json();
    let events = events["events"].as_array().unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["event"]["externalid"], "evt_1");
    let shown = inboxd(&home, &["events", "show", "1"]).ok();
    assert!(shown.contains("3 times") && shown.contains("number 1 of the configured"), "{shown}");
}

#[tokio::test]
async fn what_is_not_accepted_says_so() {
    let home = home();
    let gateway = home.start();
    let url = format!("http://{}/webhooks/unifyport/main", gateway.public);
    let old = ["unifyport", "send", "--url", &url, "--timestamp", "2020-01-01T00:00:00Z"];
    let place = format!("http://{}", gateway.public);
    let ran = inboxd(&home, &old);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), b"401 Unauthorized\n".as_slice()));
    let expected = format!("{place} did not accept the delivery: this delivery was not accepted\n");
    assert_eq!(ran.stderr, expected);
    let elsewhere = format!("{place}/nothing/here?password=canary");
    let ran = inboxd(&home, &["unifyport", "send", "--url", &elsewhere]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), b"404 Not Found\n".as_slice()));
    assert_eq!(ran.stderr, format!("{place} did not accept the delivery: nothing is here\n"));
    gateway.kill();
    let error = inboxd(&home, &["unifyport", "send", "--url", &elsewhere]).failed(1);
    assert!(error.starts_with(&format!("{place} does not answer (")), "{error}");
    assert!(error.ends_with("start `inboxd serve`, or give another address with --url\n"));
    assert!(!error.contains("canary"), "{error}");
}

#[test]
fn the_configured_public_address_is_the_usual_target() {
    let port = super::super::support::postgres::free_port().to_string();
    let home = home().env("INBOXD_SERVER_PUBLIC", &format!("127.0.0.1:{port}"));
    let gateway = home.start();
    let sent = run(&mut home.command(&["unifyport", "send"]), b"{}");
    assert_eq!(sent.ok(), "204 No Content\n");
    gateway.kill();
    let error = inboxd(&home, &["unifyport", "send"]).failed(1);
    assert!(error.starts_with(&format!("http://127.0.0.1:{port} does not answer (")), "{error}");
}

#[test]
fn wrong_use_is_told_with_its_remedy() {
    let (home, nothing) = (home().env("BLANK", " "), Home::new(""));
    let verify = ["unifyport", "verify", "--timestamp", "1", "--signature", "0"];
    for (home, arguments, code, told) in [
        (&nothing, &["unifyport", "sign"][..], 2, "no endpoint is configured: name the variable"),
        (
            &home,
            &["unifyport", "sign", "--endpoint", "other"],
            2,
            "no endpoint \"other\" is configured; there is main",
        ),
        (
            &home,
            &["unifyport", "sign", "--secret-env", "UNSET"],
            2,
            "--secret-env names \"UNSET\", which is no",
        ),
        (
            &home,
            &["unifyport", "sign", "--secret-env", "BLANK"],
            2,
            "--secret-env names \"BLANK\", which is no",
        ),
        (
            &home,
            &["unifyport", "sign", "--event-id", "a\nb"],
            2,
            "the text of --event-id cannot stand in a header",
        ),
        (
            &home,
            &["unifyport", "sign", "missing.json"],
            1,
            "the body missing.json cannot be read; correct the path",
        ),
        (
            &home,
            &["unifyport", "send"],
            2,
            "the configuration leaves the port of server.public open",
        ),
        (
            &home,
            &["unifyport", "send", "--url", "example"],
            2,
            "--url takes a whole URL, such as https://host/",
        ),
        (&home, &["unifyport", "send", "--url", "ftp://localhost/"], 2, "--url takes a whole URL"),
        (
            &home,
            &["unifyport", "verify"],
            2,
            "error: the following required arguments were not provided",
        ),
        (&home, &verify, 1, "not verified: the signature is not 64 hexadecimal digits"),
    ] {
        let error = inboxd(home, arguments).failed(code);
        assert!(error.starts_with(told), "{arguments:?}: {error}");
    }
}
