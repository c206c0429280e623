//! Removals of what is old, and of what is known of it.

use std::time::Duration;

use inboxd::store::Removal;

use super::pair::Pair;
use super::{UNIT, units};

/// How long a removed event is known; never the same as any time that passes.
const KNOWN: Duration = Duration::from_secs(25_000);

impl Pair<'_> {
    /// Of what is older than so many units.
    pub(super) async fn remove(&mut self, older_than: u32, limit: usize) {
        let mut removed = 0;
        let mut next = Some(0);
        while let Some(after) = next {
            let removal = Removal {
                older_than: UNIT * older_than,
                identities_for: KNOWN,
                after,
                limit,
                max_bytes: 40,
            };
            let step = self.store().remove_finished(removal).await.unwrap();
            removed += step.events as usize;
            next = step.next;
        }
        assert_eq!(removed, self.model.remove(units(older_than), KNOWN.as_micros() as i64));
    }

    /// So many identities at a time.
    pub(super) async fn forget(&mut self, limit: usize) {
        let mut forgotten = 0;
        loop {
            let step = self.store().forget_identities(limit).await.unwrap() as usize;
            forgotten += step;
            if step < limit {
                break;
            }
        }
        assert_eq!(forgotten, self.model.forget());
    }

    /// What is finished does not stay for ever, and neither does what is known of it.
    pub(super) async fn clear_away(&mut self) {
        self.pass(100).await;
        self.remove(1, 5).await;
        self.compare_all().await;
        self.pass(100).await;
        self.forget(5).await;
    }

    pub(super) async fn compare_identities(&self) {
        let sql = "SELECT count(*) FROM identities";
        assert_eq!(self.fixture.raw.number(sql).await, self.model.known() as i64);
        let sql = "SELECT count(*) FROM lanes AS l
                   WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.conversation = l.lane)";
        assert_eq!(self.fixture.raw.number(sql).await, 0, "lanes of nothing");
        let sql = "SELECT event_seq || ' ' || count(*) || ' ' || sum(receipts)
                   FROM variants GROUP BY event_seq ORDER BY event_seq";
        let events = self.model.events.iter().zip(&self.events);
        let varied = events.filter(|(event, _)| !event.variants.is_empty());
        let expected = varied.map(|(event, (sequence, _))| {
            let conflicts: i64 = event.variants.values().sum();
            format!("{sequence} {} {conflicts}", event.variants.len())
        });
        assert_eq!(self.fixture.raw.texts(sql).await, expected.collect::<Vec<_>>());
    }
}
