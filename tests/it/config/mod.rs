//! The configuration: what it reads, every fault it finds, and that no secret is ever shown.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]

mod environment;
mod faults;
mod secrets;
mod values;

use inboxd::config::{Config, Env};

/// A secret that must never appear in a message.
const CANARY: &str = "CANARYcanary42";

// A table of each kind that has no fault.
const BOT: &str = "[[telegram]]\nname = \"b\"\ntoken = { env = \"TOKEN\" }\n";
const ENDPOINT: &str = "[[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"S\" }]\n";
const WORKER: &str = "[[token]]\nname = \"t\"\nvalue = { env = \"S\" }\nrole = \"worker\"\n";

/// Loads `toml` as the file `inboxd.toml` of a new folder; the faults as printed lines, with the
/// folder taken off.
fn load(toml: &str, env: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inboxd.toml");
    std::fs::write(&file, toml).unwrap();
    std::fs::write(folder.path().join("secret"), "from file\n").unwrap();
    let env: Env = env.iter().copied().chain([("S", "s1"), ("TOKEN", "1:abc")]).collect();
    let folder_name = format!("{}/", folder.path().display());
    Config::load(Some(&file), &env)
        .map_err(|faults| faults.to_string().lines().map(|l| l.replace(&folder_name, "")).collect())
}

/// The only fault of `toml`.
fn fault(toml: &str, env: &[(&str, &str)]) -> String {
    let faults = load(toml, env).expect_err(toml);
    assert_eq!(faults.len(), 1, "{toml}\n{faults:#?}");
    faults.into_iter().next().unwrap()
}
