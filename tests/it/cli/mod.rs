//! The command line as its users meet it: the real binary, its outputs and exit codes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::support::process::{Gateway, Home};

mod consumers;
mod dead;
mod events;
mod examples;
mod replay;
mod sources;
mod tail;
mod telegram;
mod unifyport;
mod usage;

/// Must appear in no output.
const SECRET: &str = "canary-signing-secret";

/// How a command ended, and what it wrote.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ran {
    /// What it wrote to stdout; the test fails if the command did.
    fn ok(self) -> String {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{self:?}");
        String::from_utf8(self.stdout).unwrap()
    }

    /// The sentence on stderr of a command that failed with this code, and wrote nothing else.
    fn failed(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.len()), (Some(code), 0), "{self:?}");
        assert!(!self.stderr.contains(SECRET), "{self:?}");
        self.stderr
    }

    /// Each line of what it wrote, as JSON.
    fn json_lines(self) -> Vec<Value> {
        self.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Runs a command to its end on this input.
fn run(command: &mut Command, stdin: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that takes no input may have ended before this.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran { code: output.status.code(), stdout: output.stdout, stderr }
}

/// Runs `inboxd` in this home.
fn inboxd(home: &Home, arguments: &[&str]) -> Ran {
    run(&mut home.command(arguments), b"")
}

const ENDPOINT: &str = "[[unifyport]]\nname = \"main\"\nsecrets = [{ env = \"SECRET\" }]\n";

/// A home with the endpoint `main`.
fn home() -> Home {
    Home::new(ENDPOINT).env("SECRET", SECRET)
}

/// Delivers this body, as `inboxd unifyport send` does.
fn deliver(home: &Home, gateway: &Gateway, body: &[u8]) {
    let url = format!("http://{}/webhooks/unifyport/main", gateway.public);
    let sent = run(&mut home.command(&["unifyport", "send", "--url", &url]), body);
    assert_eq!(sent.ok(), "204 No Content\n");
}

/// A home whose inbox holds deliveries of these bodies, and where no gateway runs.
fn inbox(bodies: &[&[u8]]) -> Home {
    let home = home();
    let gateway = home.start();
    for body in bodies {
        deliver(&home, &gateway, body);
    }
    assert!(gateway.terminate().success());
    home
}

/// Asks until there is an answer, for what is told by no output; the test fails after a minute.
async fn until<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("an answer in its time")
}

/// A text message as UnifyPort delivers it.
fn message(id: &str, sender: &str, text: &str) -> String {
    serde_json::json!({
        "id": id, "type": "message.received", "provider": "whatsapp", "account_id": "acc",
        "occurred_at": "2026-06-08T12:34:56Z",
        "data": {
            "conversation": { "id": sender, "type": "user" },
            "sender": { "id": sender, "name": sender },
            "message": { "id": id, "type": "text", "text": text, "direction": "inbound" },
        },
    })
    .to_string()
}
