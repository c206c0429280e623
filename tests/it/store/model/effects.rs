//! What workers do outside, recorded around the act.

use super::{Given, Model};

/// What a worker recorded under a key.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// Whose it is, until somebody else was told that it is in doubt.
    beginner: Option<Given>,
    /// The event whose delivery began it.
    pub(crate) event: usize,
    /// The newest given.
    token: usize,
    /// The first given, which tells when it was begun.
    pub(crate) begun: usize,
    result: Option<Option<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectState {
    InDoubt,
    Running,
    Finished,
}

/// What whoever wants to act is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    New { token: usize },
    Again { token: usize },
    Running,
    InDoubt { begun: usize, token: usize },
    Finished(Option<u8>),
    Stale,
}

impl Effect {
    pub(super) fn finished(&self) -> bool {
        self.result.is_some()
    }
}

impl Model {
    pub(crate) fn begin(&mut self, reader: usize, key: u8, asker: Given) -> Begun {
        if self.held(reader, asker).is_none() {
            return Begun::Stale;
        }
        let fresh = self.tokens + 1;
        let Some(effect) = self.effects.get(&(reader, key)).cloned() else {
            self.tokens = fresh;
            let (beginner, event) = (Some(asker), asker.event);
            let effect = Effect { beginner, event, token: fresh, begun: fresh, result: None };
            self.effects.insert((reader, key), effect);
            return Begun::New { token: fresh };
        };
        if let Some(result) = effect.result {
            return Begun::Finished(result);
        }
        if effect.beginner == Some(asker) {
            return Begun::Again { token: effect.token };
        }
        if self.runs(&effect) {
            return Begun::Running;
        }
        self.tokens = fresh;
        let begun = effect.begun;
        let doubted = Effect { beginner: None, token: fresh, ..effect };
        self.effects.insert((reader, key), doubted);
        Begun::InDoubt { begun, token: fresh }
    }

    pub(crate) fn finish(
        &mut self,
        reader: usize,
        key: u8,
        token: usize,
        result: Option<u8>,
    ) -> bool {
        match self.effects.get_mut(&(reader, key)) {
            Some(effect) if effect.token == token => *effect.result.get_or_insert(result) == result,
            _ => false,
        }
    }

    pub(crate) fn abandon(&mut self, reader: usize, key: u8, token: usize) -> bool {
        let begun = self.effects.get(&(reader, key)).filter(|effect| effect.result.is_none());
        let is_newest = begun.is_some_and(|effect| effect.token == token);
        is_newest && self.effects.remove(&(reader, key)).is_some()
    }

    /// A reader's effects in the order in which they were begun.
    pub(crate) fn effects(&self, reader: usize) -> Vec<(u8, &Effect, EffectState)> {
        let of_reader = self.effects.iter().filter(|((of, _), _)| *of == reader);
        let mut all: Vec<_> = of_reader
            .map(|((_, key), effect)| {
                let state = match effect.result {
                    Some(_) => EffectState::Finished,
                    None if self.runs(effect) => EffectState::Running,
                    None => EffectState::InDoubt,
                };
                (*key, effect, state)
            })
            .collect();
        all.sort_by_key(|(_, effect, _)| effect.begun);
        all
    }

    /// Whether whoever began it still holds its lease.
    fn runs(&self, effect: &Effect) -> bool {
        let held = effect.beginner.and_then(|beginner| self.held(beginner.reader, beginner));
        held.is_some_and(|one| self.work[one].due > self.now)
    }
}
