//! What the workers know together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use inboxd::effect::Token;
use inboxd::event::Sequence;

/// A consumer and an event.
pub(super) type Piece = (&'static str, Sequence);

/// Entries are made after a claim and removed before whatever gives the work away, so that two of
/// one piece mean that two had it.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    holders: HashMap<Piece, u64>,
    keys: HashMap<u64, Key>,
    figures: BTreeMap<&'static str, usize>,
}

#[derive(Default)]
struct Key {
    begun: usize,
    abandoned: usize,
    /// Tokens that finished it.
    finished: HashSet<[u8; 16]>,
}

impl Ledger {
    fn change<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    pub(super) fn count(&self, what: &'static str) {
        self.change(|entries| *entries.figures.entry(what).or_default() += 1);
    }

    pub(super) fn figures(&self) -> String {
        self.change(|entries| format!("{:?}", entries.figures))
    }

    /// This worker was given it for long.
    pub(super) fn hold(&self, piece: Piece, worker: u64) {
        let holder = self.change(|entries| entries.holders.insert(piece, worker));
        assert_eq!(holder, None, "{piece:?} was given to {worker} too");
    }

    /// This worker gives it away.
    pub(super) fn release(&self, piece: Piece, worker: u64) {
        let holder = self.change(|entries| entries.holders.remove(&piece));
        assert_eq!(holder, Some(worker), "{piece:?}");
    }

    pub(super) fn begun(&self, key: u64) {
        self.change(|entries| entries.keys.entry(key).or_default().begun += 1);
    }

    pub(super) fn abandoned(&self, key: u64) {
        self.change(|entries| entries.keys.entry(key).or_default().abandoned += 1);
    }

    pub(super) fn finished(&self, key: u64, token: Token) {
        self.change(|entries| entries.keys.entry(key).or_default().finished.insert(token.0));
    }

    /// Once all are done: each key was begun once, and once more each time that it was abandoned,
    /// and finished once.
    pub(super) fn check(&self) {
        self.change(|entries| {
            for (number, key) in &entries.keys {
                assert!(key.begun <= key.abandoned + 1, "key {number} was begun twice");
                assert!(key.finished.len() <= 1, "key {number} was finished twice");
            }
        });
    }
}
