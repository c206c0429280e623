//! The arrows between the modules, and what stands in no file: the rules of ARCHITECTURE.md that a
//! compiler does not check. A module that does not exist keeps every rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::support::imports::paths;

/// What a module, with everything in it, may import of ours beside itself.
enum Imports {
    Only(&'static [&'static str]),
    Never(&'static [&'static str]),
}
use Imports::{Never, Only};

/// `(module, what it may import, because)`: `""` is every module, `lib` the root, where `run` is.
const ARROWS: &[(&str, Imports, &str)] = &[
    ("clock", Only(&[]), "everything stands on it"),
    ("effect", Only(NOUNS), "the nouns stand on nothing else"),
    ("conversation", Only(NOUNS), "the nouns stand on nothing else"),
    ("consumer", Only(NOUNS), "the nouns stand on nothing else"),
    ("event", Only(NOUNS), "the nouns stand on nothing else"),
    ("source", Only(NOUNS), "the nouns stand on nothing else"),
    ("replay", Only(NOUNS), "the nouns stand on nothing else"),
    ("work", Only(NOUNS), "the nouns stand on nothing else"),
    ("json", Only(NOUNS), "reading JSON is a function of the bytes"),
    ("view", Only(NOUNS), "a view is a function of the bytes"),
    ("retry", Only(NOUNS), "a wait is computed there, not waited"),
    ("receive::unifyport::signature", Only(NOUNS), "others use it in tests of their own"),
    ("config", Only(&[]), "the configuration does not know who reads it"),
    ("openapi", Only(&[]), "the document is a constant"),
    ("receive", Never(&["deliver", "store"]), "a receiver ends at the inbox"),
    ("deliver", Never(&["receive", "store"]), "a worker begins at the inbox"),
    ("inbox", Only(UNDER_THE_INBOX), "it serves whoever receives or delivers, unseen"),
    ("store", Never(ABOVE_THE_STORE), "the store serves, and calls nobody back"),
    ("simulate", Only(PURE), "what checks the product must not share its mistakes"),
    ("", Never(&["cli"]), "only the binary knows the command line"),
];
const NOUNS: &[&str] =
    &["clock", "consumer", "conversation", "effect", "event", "json", "replay", "source", "work"];
const UNDER_THE_INBOX: &[&str] = &[
    "clock",
    "consumer",
    "conversation",
    "effect",
    "event",
    "json",
    "replay",
    "retry",
    "shutdown",
    "source",
    "store",
    "telemetry",
    "view",
    "work",
];
const ABOVE_THE_STORE: &[&str] =
    &["cli", "deliver", "http", "inbox", "lib", "operate", "receive", "simulate"];

/// Values and functions on them: no input or output, so that a test needs nothing but arguments.
const PURE: &[&str] = &[
    "effect",
    "conversation",
    "consumer",
    "event",
    "json",
    "receive::unifyport::signature",
    "replay",
    "retry",
    "source",
    "view",
    "work",
    "clock",
];

/// `(what a path begins with, the one module where it may stand, because)`.
const OUTSIDE: &[(&str, &str, &str)] = &[("sqlx", "store", "SQL stands in the store")];

/// What no pure module may name.
const INPUT_AND_OUTPUT: &[&str] = &[
    "axum",
    "hyper",
    "reqwest",
    "sqlx",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "tokio",
];

/// How a path ends that asks the wall clock.
const WALL_CLOCK: &[&str] = &["SystemTime::now", "Timestamp::now", "Zoned::now"];

#[test]
fn the_arrows_between_modules_point_one_way() {
    let faults = arrows(&sources());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_modules_need_each_other() {
    if let Some(cycle) = cycle(&sources()) {
        panic!("a cycle: {}", cycle.join(" → "));
    }
}

#[test]
fn the_outside_is_met_in_its_own_place() {
    let faults = outside(&sources());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let long: Vec<String> = rust_files(&["src", "tests", "examples", "benches"])
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > 400)
        .map(|(name, lines)| format!("{name}: {lines}"))
        .collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn nothing_is_left_undone_or_untested() {
    // Written apart, because this file is searched too.
    let signs =
        [concat!("#[ig", "nore"), concat!("to", "do!"), concat!("TO", "DO"), concat!("FIX", "ME")];
    let found: Vec<String> = rust_files(&["src", "tests", "examples", "benches"])
        .iter()
        .flat_map(|(name, text)| {
            let numbered = text.lines().enumerate();
            let marked = numbered.filter(|(_, line)| signs.iter().any(|sign| line.contains(sign)));
            marked.map(move |(number, line)| format!("{name}:{}: {}", number + 1, line.trim()))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn both_stores_have_the_same_migrations() {
    let names = |dialect: &str| -> BTreeSet<String> {
        let files = fs::read_dir(root().join("migrations").join(dialect)).into_iter().flatten();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("sqlite"), names("postgres"));
}

#[test]
fn a_broken_rule_is_found() {
    let source = |name: &str, text: &str| Source::new(&format!("src/{name}.rs"), text);
    let broken = |name: &str, text: &str| {
        let source = [source(name, text)];
        arrows(&source).len() + outside(&source).len()
    };
    assert_eq!(broken("receive/telegram/poller", "use crate::{inbox, event::Event};"), 0);
    assert_eq!(broken("receive/telegram/poller", "use crate::{inbox, store::Store};"), 1);
    assert_eq!(broken("receive/mod", "fn f() { super::store::open() }"), 1);
    assert_eq!(broken("deliver/claim", "use crate::receive::unifyport::envelope;"), 1);
    assert_eq!(broken("receive/unifyport/signature", "use super::envelope::Id;"), 1);
    assert_eq!(broken("simulate/sender", "use crate::receive::unifyport::signature::sign;"), 0);
    assert_eq!(broken("simulate/sender", "use crate::receive::unifyport::envelope;"), 1);
    assert_eq!(broken("config", "use crate::run;"), 1);
    assert_eq!(broken("store/sqlite", "use sqlx::Row;"), 0);
    assert_eq!(broken("inbox/mod", "fn f(row: sqlx::sqlite::SqliteRow) {}"), 1);
    assert_eq!(broken("event", "use std::{fmt, fs};"), 1);
    assert_eq!(broken("inbox/mod", "fn f() { std::time::SystemTime::now(); }"), 1);
    assert_eq!(broken("clock", "fn f() { jiff::Timestamp::now(); }"), 0);
    assert_eq!(broken("operate", "use crate::cli::table;"), 1);
    assert_eq!(broken("main", "use inboxd::cli;"), 0);
    assert_eq!(broken("lib", "pub mod cli; pub use cli::Command;"), 1);

    assert_eq!(broken("tokio_like", "fn f() { tokio::spawn(x); }"), 0);
    assert_eq!(broken("retry", "fn f() { tokio::spawn(x); }"), 1);

    let cyclic = [source("a", "use crate::b::X;"), source("b", "use super::a::Y;")];
    assert_eq!(cycle(&cyclic).unwrap(), ["a", "b", "a"]);
    assert_eq!(cycle(&cyclic[..1]), None);
}

/// One file of `src` with the paths it names.
struct Source {
    name: String,
    /// Its module, `a::b`; `lib` and `main` for the two roots.
    module: String,
    /// The paths into our modules, `a::b::c`, without the `crate`.
    ours: BTreeSet<String>,
    /// All others of more than one segment.
    others: BTreeSet<String>,
}

impl Source {
    fn new(name: &str, text: &str) -> Source {
        let module = name.trim_start_matches("src/").trim_end_matches(".rs");
        let module: Vec<&str> = module.split('/').filter(|part| *part != "mod").collect();
        let is_root = module == ["lib"] || module == ["main"];
        let inside: &[&str] = if is_root { &[] } else { &module };
        let (mut ours, mut others) = (BTreeSet::new(), BTreeSet::new());
        for path in paths(text, inside).iter().filter(|path| path.len() > 1) {
            if path[0] == "crate" || path[0] == "inboxd" {
                ours.insert(path[1..].join("::"));
                continue;
            }
            // The root names its modules as they are.
            if is_root {
                ours.insert(path.join("::"));
            }
            others.insert(path.join("::"));
        }
        Source { name: name.to_owned(), module: module.join("::"), ours, others }
    }
}

fn sources() -> Vec<Source> {
    rust_files(&["src"]).iter().map(|(name, text)| Source::new(name, text)).collect()
}

/// What breaks a rule of [`ARROWS`].
fn arrows(sources: &[Source]) -> Vec<String> {
    let mut faults = vec![];
    for source in sources.iter().filter(|source| source.module != "main") {
        for (module, rule, because) in ARROWS {
            if !is_in(&source.module, module) {
                continue;
            }
            let own = if module.is_empty() { top(&source.module) } else { module };
            for path in source.ours.iter().filter(|path| !is_in(path, own)) {
                let is_kept = match rule {
                    Only(these) => these.iter().any(|this| is_in(path, this)),
                    Never(these) => !these.iter().any(|this| is_in(path, this)),
                };
                if !is_kept {
                    faults.push(format!("{} names {path}, but {because}", source.name));
                }
            }
        }
    }
    faults
}

/// What names a thing outside that belongs elsewhere.
fn outside(sources: &[Source]) -> Vec<String> {
    let mut faults = vec![];
    for source in sources {
        let is_pure = PURE.iter().any(|module| *module != "clock" && is_in(&source.module, module));
        for path in &source.others {
            for (what, place, because) in OUTSIDE {
                if is_in(path, what) && !is_in(&source.module, place) {
                    faults.push(format!("{} names {path}, but {because}", source.name));
                }
            }
            if is_pure && INPUT_AND_OUTPUT.iter().any(|what| is_in(path, what)) {
                faults.push(format!("{} names {path}, but does no I/O", source.name));
            }
            let asks = |end: &&str| format!("::{path}").ends_with(&format!("::{end}"));
            if source.module != "clock" && WALL_CLOCK.iter().any(asks) {
                faults.push(format!(
                    "{} names {path}, but only the clock asks the time",
                    source.name
                ));
            }
        }
    }
    faults
}

/// A way from a top-level module back to itself, if there is one. What is no module is an item of
/// the root.
fn cycle(sources: &[Source]) -> Option<Vec<String>> {
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        arrows.entry(top(&source.module)).or_default();
    }
    for source in sources {
        let from = top(&source.module);
        for path in &source.ours {
            let to = if arrows.contains_key(top(path)) { top(path) } else { "lib" };
            if to != from {
                arrows.get_mut(from)?.insert(to);
            }
        }
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|module| way_back(module, &arrows, &mut vec![], &mut done))
}

fn way_back<'a>(
    module: &'a str,
    arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    way: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<String>> {
    if let Some(start) = way.iter().position(|before| *before == module) {
        return Some(way[start..].iter().chain([&module]).map(|name| name.to_string()).collect());
    }
    if !done.insert(module) {
        return None;
    }
    way.push(module);
    let found = arrows.get(module)?.iter().find_map(|next| way_back(next, arrows, way, done));
    way.pop();
    found
}

/// Whether this path is the module's or leads into it; everything is in `""`.
fn is_in(path: &str, module: &str) -> bool {
    module.is_empty()
        || path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn top(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files under these directories: name from the package's root, and text.
fn rust_files(directories: &[&str]) -> Vec<(String, String)> {
    let mut files = vec![];
    let mut directories: Vec<_> = directories.iter().map(|name| root().join(name)).collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                files.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    files
}
