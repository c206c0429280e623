//! Replays, at once and in steps with anything in between.

use std::sync::Arc;

use inboxd::replay::{Place, Selection};

use super::super::model;
use super::super::sample::{Vary as _, sample};
use super::READERS;
use super::pair::{Pair, chat, event_type};

/// A replay that is not at its end.
pub(super) struct Open {
    of_store: Arc<Selection>,
    of_model: model::Replay,
    from: Option<Place>,
    limit: usize,
}

impl Pair<'_> {
    pub(super) async fn replay(
        &mut self,
        reader: usize,
        selection: &model::Selection,
        limit: usize,
        whole: bool,
    ) {
        let mut selection = selection.clone();
        selection.events = selection.events.map(|events| {
            let known = events.iter().map(|one| one.checked_rem(self.events.len()));
            known.flatten().collect()
        });
        let of_chat = |number| sample(self.fixture.main, "any").in_chat(&chat(number));
        let of_store = Arc::new(Selection {
            dead: selection.dead,
            ids: (selection.events.as_ref())
                .map(|events| events.iter().map(|one| self.events[*one].1).collect()),
            event_type: selection.rare.map(|rare| event_type(rare).to_owned()),
            conversation: selection.chat.and_then(|chat| of_chat(chat).attributes.subject),
            ..Selection::default()
        });
        let of_model = self.model.begin_replay(reader, selection);
        self.open = Some(Open { of_store, of_model, from: None, limit });
        self.go_on().await;
        while whole && self.open.is_some() {
            self.go_on().await;
        }
    }

    pub(super) async fn go_on(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let name = READERS[open.of_model.reader].name;
        let step = self.store().replay(name, open.of_store.clone(), open.from, open.limit);
        let replayed = step.await.unwrap();
        let behind = replayed.next.map(|place| {
            self.events.iter().take_while(|(sequence, _)| *sequence <= place.after).count()
        });
        assert_eq!(replayed.count, self.model.replay(&mut open.of_model, behind));
        assert!(replayed.count <= open.limit);
        self.tick();
        if replayed.next.is_some() {
            self.open = Some(Open { from: replayed.next, ..open });
        }
    }
}
