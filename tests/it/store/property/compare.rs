//! The store holds what the model holds.

use std::time::Duration;

use inboxd::effect::{EffectQuery, State as Progress};
use inboxd::work::DeadQuery;

use super::super::model::{EffectState, State};
use super::effects::key;
use super::pair::Pair;
use super::{READERS, UNIT};

/// Pages are small, so that there are several.
const PAGE: usize = 3;

impl Pair<'_> {
    /// All rows, and what one of the readers sees of them, each in turn.
    pub(super) async fn compare(&mut self) {
        self.compare_rows().await;
        self.turns += 1;
        self.compare_views(self.turns % READERS.len()).await;
    }

    pub(super) async fn compare_all(&mut self) {
        self.compare_rows().await;
        for reader in 0..READERS.len() {
            self.compare_views(reader).await;
        }
    }

    async fn compare_rows(&self) {
        assert_eq!(self.store().audit().await.unwrap(), Vec::<String>::new());
        self.compare_work().await;
        self.compare_due().await;
        self.compare_attempts().await;
        self.compare_events().await;
        self.compare_identities().await;
    }

    async fn compare_views(&mut self, reader: usize) {
        self.compare_next_due(reader).await;
        self.compare_counts(reader).await;
        self.compare_dead(reader).await;
        for state in [None, Some(EffectState::InDoubt)] {
            self.compare_effects(reader, state).await;
        }
    }

    /// In the order of work, with the token of what is leased or done.
    async fn compare_work(&self) {
        let hex = if self.fixture.raw.is_sqlite() { "lower(hex" } else { "encode(" };
        let end = if self.fixture.raw.is_sqlite() { "(w.receipt))" } else { "w.receipt, 'hex')" };
        let sql = format!(
            "SELECT c.name || ' ' || w.event_seq || ' ' || w.state || ' ' || w.attempt || ' ' ||
                    CASE WHEN w.state IN (1, 2) THEN {hex}{end} ELSE '' END
             FROM work AS w JOIN consumers AS c ON c.id = w.consumer_id ORDER BY c.id, w.pos"
        );
        let found = self.fixture.raw.texts(&sql).await;
        let in_order = (0..READERS.len()).flat_map(|reader| self.model.in_order(reader));
        let expected = in_order.map(|one| {
            let work = &self.model.work[one];
            let (state, claim) = match work.state {
                State::Ready => (0, None),
                State::Leased { claim } => (1, Some(claim)),
                State::Done { claim } => (2, Some(claim)),
                State::Dead => (3, None),
            };
            let token = claim.map(|claim| hex::encode(self.claims[&claim])).unwrap_or_default();
            let (name, sequence) = (READERS[work.reader].name, self.events[work.event].0);
            format!("{name} {sequence} {state} {} {token}", work.attempt)
        });
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    /// When each piece of unfinished work is due, in the order of work.
    async fn compare_due(&self) {
        let now = if self.fixture.raw.is_sqlite() {
            self.fixture.clock().now().micros().to_string()
        } else {
            "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint".to_owned()
        };
        let sql =
            format!("SELECT due_at - {now} FROM work WHERE state < 2 ORDER BY consumer_id, pos");
        let found = self.fixture.raw.numbers(&sql).await;
        let in_order = (0..READERS.len()).flat_map(|reader| self.model.in_order(reader));
        let unfinished = in_order.filter(|one| self.model.work[*one].unfinished());
        let expected: Vec<i64> =
            unfinished.map(|one| self.model.work[one].due - self.model.now).collect();
        let close = |(found, expected): (&i64, &i64)| {
            found.abs_diff(*expected) < UNIT.as_micros() as u64 / 2
        };
        let all_close = found.iter().zip(&expected).all(close);
        assert!(found.len() == expected.len() && all_close, "{found:?}, not {expected:?}");
    }

    async fn compare_attempts(&self) {
        let sql = "SELECT c.name || ' ' || a.event_seq || ' ' || a.attempt || ' ' || a.error
                   FROM attempts AS a JOIN consumers AS c ON c.id = a.consumer_id
                   ORDER BY c.id, a.event_seq, a.attempt";
        let mut expected = Vec::new();
        for (place, reader) in READERS.iter().enumerate() {
            for work in self.model.work.iter().filter(|work| work.reader == place) {
                let (name, sequence) = (reader.name, self.events[work.event].0);
                for (attempt, error) in &work.failures {
                    expected.push(format!("{name} {sequence} {attempt} {error}"));
                }
            }
        }
        assert_eq!(self.fixture.raw.texts(sql).await, expected);
    }

    async fn compare_events(&self) {
        let sql = "SELECT seq || ' ' || receipts FROM events ORDER BY seq";
        let events = self.model.events.iter().zip(&self.events).enumerate();
        let there = events.filter(|(place, _)| !self.model.gone(*place));
        let expected =
            there.map(|(_, (event, (sequence, _)))| format!("{sequence} {}", event.receipts));
        assert_eq!(self.fixture.raw.texts(sql).await, expected.collect::<Vec<_>>());
    }

    async fn compare_next_due(&self, reader: usize) {
        let next = self.store().next_due(READERS[reader].name).await.unwrap();
        let expected = self.model.next_due(reader).map(|micros| micros as u64);
        let expected = expected.map(Duration::from_micros);
        let close = match (next, expected) {
            (Some(next), Some(expected)) => {
                next.is_zero() == expected.is_zero() && next.abs_diff(expected) < UNIT / 2
            }
            (next, expected) => next == expected,
        };
        assert!(close, "{}: {next:?}, not {expected:?}", READERS[reader].name);
    }

    async fn compare_counts(&self, reader: usize) {
        let states = self.store().consumer_states(Some(READERS[reader].name)).await.unwrap();
        let [found] = &states[..] else { panic!("{states:?}") };
        let in_order = self.model.in_order(reader);
        let count = |which: fn(State, bool) -> bool| {
            let work = in_order.iter().map(|one| &self.model.work[*one]);
            work.filter(|work| which(work.state, work.due <= self.model.now)).count() as i64
        };
        let expected = [
            count(|state, due| due && matches!(state, State::Ready | State::Leased { .. })),
            count(|state, due| !due && state == State::Ready),
            count(|state, due| !due && matches!(state, State::Leased { .. })),
            count(|state, _| matches!(state, State::Done { .. })),
            count(|state, _| state == State::Dead),
        ];
        let counts = [found.ready, found.delayed, found.leased, found.done, found.dead];
        assert_eq!(counts, expected, "ready, delayed, leased, done, dead");
        assert_eq!(found.paused, self.model.paused(reader));
    }

    /// Dead letters with what went wrong, in the order of work.
    async fn compare_dead(&self, reader: usize) {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let query = DeadQuery { after, limit: PAGE, max_bytes: usize::MAX };
            let page = self.store().dead(READERS[reader].name, query).await.unwrap();
            assert!(page.letters.len() <= PAGE && (page.letters.len() == PAGE || !page.more));
            after = page.letters.last().map(|letter| letter.place);
            found.extend(page.letters.into_iter().map(|letter| {
                let attempts = letter.attempts.into_iter().map(|one| (one.attempt, one.error));
                (letter.event.sequence, attempts.collect::<Vec<_>>())
            }));
            if !page.more {
                break;
            }
        }
        let in_order = self.model.in_order(reader).into_iter().map(|one| &self.model.work[one]);
        let dead = in_order.filter(|work| work.state == State::Dead);
        let expected = dead.map(|work| (self.events[work.event].0, work.failures.clone()));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    /// In the order in which they were begun.
    async fn compare_effects(&mut self, reader: usize, only: Option<EffectState>) {
        let progress = |state| match state {
            EffectState::InDoubt => Progress::InDoubt,
            EffectState::Running => Progress::Running,
            EffectState::Finished => Progress::Finished,
        };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let query = EffectQuery { state: only.map(progress), after, limit: 2 };
            let page = self.store().effects(READERS[reader].name, query).await.unwrap();
            after = page.effects.last().map(|effect| effect.place());
            found.extend(page.effects);
            if !page.more {
                break;
            }
        }
        let mut all = self.model.effects(reader);
        all.retain(|(_, _, state)| only.is_none_or(|only| only == *state));
        assert_eq!(found.len(), all.len(), "{found:?}, not {all:?}");
        for (found, (number, effect, state)) in found.iter().zip(all) {
            assert_eq!((&found.key, found.state), (&key(number), progress(state)));
            assert_eq!(found.event_id, Some(self.events[effect.event].1));
            assert_eq!(found.finished_at.is_some(), state == EffectState::Finished);
            let begun_at = *self.begun.entry(effect.begun).or_insert(found.begun_at);
            assert_eq!(found.begun_at, begun_at);
        }
    }
}
