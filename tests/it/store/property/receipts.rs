//! Acks, nacks and extensions, of receipts that hold their work and of those that do not.

use std::time::Duration;

use inboxd::work::{Nack, Nacked, Receipt};

use super::super::model::{self, Given};
use super::pair::Pair;
use super::steps::Picks;
use super::{READERS, UNIT, units};

/// Whose it is, and each receipt with what the model knows of it.
pub(super) type Request = (usize, Vec<Receipt>, Vec<Given>);

impl Pair<'_> {
    /// What was given so long ago; what is before the first begins again at the newest.
    pub(super) fn recent<T: Copy>(all: &[T], recent: usize) -> Option<T> {
        all.iter().rev().nth(recent.checked_rem(all.len())?).copied()
    }

    pub(super) fn request(&self, picks: &Picks) -> Request {
        let holds = |given: &Given| self.model.held(picks.reader, *given).is_some();
        let own = self
            .receipts
            .iter()
            .filter(|(_, given)| given.reader == picks.reader && (!picks.good || holds(given)));
        let own: Vec<(Receipt, Given)> = own.copied().collect();
        let mut picked: Vec<(Receipt, Given)> =
            picks.recent.iter().filter_map(|one| Self::recent(&own, *one)).collect();
        if picks.foreign {
            picked.extend(self.receipts.last());
        }
        if let (true, Some((sequence, _))) = (picks.made_up, self.events.first()) {
            let given = Given { reader: picks.reader, event: 0, claim: usize::MAX };
            picked.push((Receipt { sequence: *sequence, token: [7; 16] }, given));
        }
        let (receipts, given) = picked.into_iter().unzip();
        (picks.reader, receipts, given)
    }

    /// All that the last claim gave, which were so many.
    fn newest(&self, reader: usize, count: usize) -> Request {
        let newest = self.receipts[self.receipts.len() - count..].iter().copied();
        let (receipts, given) = newest.unzip();
        (reader, receipts, given)
    }

    pub(super) async fn ack(&mut self, (reader, receipts, given): Request) {
        let done = self.store().ack(READERS[reader].name, receipts).await.unwrap();
        assert_eq!(done, self.model.ack(reader, &given));
    }

    pub(super) async fn work(&mut self, reader: usize, max: usize) {
        let count = self.claim(reader, max, Some(1)).await;
        self.tick();
        self.ack(self.newest(reader, count)).await;
        self.tick();
    }

    pub(super) async fn nack(&mut self, request: Request, delay: Option<u32>, dead: bool) {
        let error = format!("error {}", self.model.now);
        let nack = Nack { delay: delay.map(|units| UNIT * units), error: Some(error), dead };
        self.nack_with(request, nack).await;
    }

    async fn nack_with(&mut self, (reader, receipts, given): Request, nack: Nack) {
        let of_model = model::Nack {
            delay: nack.delay.map(|delay| delay.as_micros() as i64),
            error: nack.error.clone().unwrap_or("nacked".to_owned()),
            dead: nack.dead,
        };
        let nacked = self.store().nack(READERS[reader].name, receipts, nack).await.unwrap();
        let nacked = nacked.into_iter().map(|one| match one {
            Nacked::Requeued => model::Nacked::Requeued,
            Nacked::Dead => model::Nacked::Dead,
            Nacked::Stale => model::Nacked::Stale,
        });
        assert_eq!(nacked.collect::<Vec<_>>(), self.model.nack(reader, &given, &of_model));
    }

    pub(super) async fn extend(&mut self, (reader, receipts, given): Request, lease: Option<u32>) {
        let of_store = lease.map(|lease| UNIT * lease);
        let extended = self.store().extend(READERS[reader].name, receipts, of_store).await.unwrap();
        assert_eq!(extended, self.model.extend(reader, &given, lease.map(units)));
    }

    pub(super) async fn churn(&mut self, reader: usize, times: usize) {
        for _ in 0..times {
            let count = self.claim(reader, 7, Some(1)).await;
            self.tick();
            let nack = Nack { delay: Some(Duration::ZERO), error: None, dead: false };
            self.nack_with(self.newest(reader, count), nack).await;
            self.tick();
        }
    }

    /// Whatever a receipt once held, and whoever has it, it changes nothing that is finished.
    pub(super) async fn try_all_receipts(&mut self) {
        for reader in 0..READERS.len() {
            let (receipts, given): (Vec<_>, Vec<_>) = self.receipts.iter().copied().unzip();
            let all = || (reader, receipts.clone(), given.clone());
            self.extend(all(), Some(1)).await;
            self.nack(all(), None, true).await;
            self.ack(all()).await;
        }
        let some = self.receipts.len() / 8 + 1;
        for (receipt, given) in self.receipts.clone().into_iter().step_by(some) {
            self.begin(9, (given.reader, vec![receipt], vec![given])).await;
        }
    }
}
