//! Effects: begun under a receipt, ended under a token.

use inboxd::effect::{Begun, Key, Token};

use super::super::model;
use super::READERS;
use super::pair::Pair;
use super::receipts::Request;

pub(super) fn key(number: u8) -> Key {
    Key::try_from(format!("key {number}")).unwrap()
}

fn result(number: u8) -> Vec<u8> {
    number.to_string().into_bytes()
}

impl Pair<'_> {
    pub(super) async fn begin(&mut self, number: u8, (reader, receipts, given): Request) {
        for (receipt, asker) in receipts.into_iter().zip(given) {
            let name = READERS[reader].name;
            let begun = self.store().begin_effect(name, key(number), receipt).await.unwrap();
            match (self.model.begin(reader, number, asker), begun) {
                (model::Begun::New { token }, Begun::Begun(given)) => {
                    self.keep(given, reader, number, token);
                }
                (model::Begun::Again { token }, Begun::Again(given)) => {
                    assert!(
                        self.tokens.contains(&(given, reader, number, token)),
                        "the same token"
                    );
                }
                (
                    model::Begun::InDoubt { begun, token },
                    Begun::InDoubt { begun_at, token: given },
                ) => {
                    let first = *self.begun.entry(begun).or_insert(begun_at);
                    assert_eq!(first, begun_at, "when it was begun first");
                    self.keep(given, reader, number, token);
                }
                (model::Begun::Finished(expected), Begun::Finished(found)) => {
                    assert_eq!(found, expected.map(result));
                }
                (model::Begun::Running, Begun::Running) | (model::Begun::Stale, Begun::Stale) => {}
                (expected, found) => panic!("{found:?}, not {expected:?}"),
            }
            self.tick();
        }
    }

    fn keep(&mut self, given: Token, reader: usize, number: u8, token: usize) {
        assert!(self.tokens.iter().all(|other| other.0 != given), "a fresh token");
        self.tokens.push((given, reader, number, token));
    }

    pub(super) async fn end(&mut self, number: u8, recent: usize, how: Option<Option<u8>>) {
        let of_key: Vec<_> =
            self.tokens.iter().filter(|(_, _, key, _)| *key == number).copied().collect();
        if let Some((given, reader, number, token)) = Self::recent(&of_key, recent) {
            self.end_with(given, reader, number, token, how).await;
        }
    }

    async fn end_with(
        &mut self,
        given: Token,
        reader: usize,
        number: u8,
        token: usize,
        how: Option<Option<u8>>,
    ) {
        let (name, key) = (READERS[reader].name, key(number));
        let (ended, expected) = match how {
            Some(number_of) => {
                let result = number_of.map(result);
                let ended = self.store().finish_effect(name, key, given, result).await.unwrap();
                (ended, self.model.finish(reader, number, token, number_of))
            }
            None => {
                let ended = self.store().abandon_effect(name, key, given).await.unwrap();
                (ended, self.model.abandon(reader, number, token))
            }
        };
        assert_eq!(ended, expected);
    }

    /// Only the newest token of a key ends anything, and only once.
    pub(super) async fn try_all_tokens(&mut self) {
        for (given, reader, number, token) in self.tokens.clone() {
            for (other, settings) in READERS.iter().enumerate() {
                if other != reader {
                    let (name, key) = (settings.name, key(number));
                    assert!(!self.store().abandon_effect(name, key, given).await.unwrap());
                }
            }
            for how in [Some(Some(9)), None, Some(None), Some(Some(9))] {
                self.end_with(given, reader, number, token, how).await;
            }
        }
    }
}
