//! What may be done, and how often.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::model::{Item, Selection};

/// Something done through one of the two open stores.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) gateway: usize,
    pub(super) step: Step,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Append(Vec<Item>),
    /// Leases, waits and delays are in units; the reader's own if none.
    Claim {
        reader: usize,
        max: usize,
        lease: Option<u32>,
    },
    Ack(Picks),
    /// Claims and acks all of it.
    Work {
        reader: usize,
        max: usize,
    },
    Nack {
        picks: Picks,
        delay: Option<u32>,
        dead: bool,
    },
    Extend {
        picks: Picks,
        lease: Option<u32>,
    },
    /// Claims and gives up all of it at once, again and again.
    Churn {
        reader: usize,
        times: usize,
    },
    Begin {
        key: u8,
        picks: Picks,
    },
    /// A token by how long ago it was given; abandons if there is no result.
    End {
        key: u8,
        recent: usize,
        result: Option<Option<u8>>,
    },
    /// Looks at so many events at a time; goes on with it later if it is not `whole`.
    Replay {
        reader: usize,
        selection: Selection,
        limit: usize,
        whole: bool,
    },
    /// Goes on with the replay that was begun last.
    GoOn,
    /// What is older than so many units, so many events at a time.
    Remove {
        older_than: u32,
        limit: usize,
    },
    /// So many identities at a time.
    Forget(usize),
    Pause {
        reader: usize,
        paused: bool,
    },
    Pass(u32),
    Reopen,
}

/// Some of the receipts given, for one request.
#[derive(Clone, Debug)]
pub(super) struct Picks {
    pub(super) reader: usize,
    /// Of those given to this reader, by how long ago.
    pub(super) recent: Vec<usize>,
    /// Only those that hold their work: most others do nothing.
    pub(super) good: bool,
    /// With one that may be another reader's.
    pub(super) foreign: bool,
    /// With one that was never given.
    pub(super) made_up: bool,
}

pub(super) fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (0..2usize, steps()).prop_map(|(gateway, step)| Turn { gateway, step });
    vec(turn, 10..100)
}

fn steps() -> impl Strategy<Value = Step> {
    let lease = || prop::option::weighted(0.8, 1..4u32);
    let result = prop::option::weighted(0.7, prop::option::weighted(0.8, 0..2u8));
    prop_oneof![
        10 => vec(item(), 1..9).prop_map(Step::Append),
        14 => (reader(), 0..9usize, lease())
            .prop_map(|(reader, max, lease)| Step::Claim { reader, max, lease }),
        8 => picks(0..5).prop_map(Step::Ack),
        5 => (reader(), 1..5usize)
            .prop_map(|(reader, max)| Step::Work { reader, max }),
        12 => (picks(0..5), prop::option::of(0..6u32), prop::bool::weighted(0.15))
            .prop_map(|(picks, delay, dead)| Step::Nack { picks, delay, dead }),
        5 => (picks(0..4), lease()).prop_map(|(picks, lease)| Step::Extend { picks, lease }),
        2 => (reader(), prop_oneof![2 => 1..3usize, 1 => Just(12)])
            .prop_map(|(reader, times)| Step::Churn { reader, times }),
        10 => (0..2u8, picks(1..3)).prop_map(|(key, picks)| Step::Begin { key, picks }),
        4 => (0..2u8, recent(), result)
            .prop_map(|(key, recent, result)| Step::End { key, recent, result }),
        6 => (reader(), selection(), 1..8usize, any::<bool>()).prop_map(
            |(reader, selection, limit, whole)| Step::Replay { reader, selection, limit, whole }
        ),
        3 => Just(Step::GoOn),
        5 => (prop_oneof![3 => Just(0u32), 2 => 1..4u32], 1..9usize)
            .prop_map(|(older_than, limit)| Step::Remove { older_than, limit }),
        3 => (1..9usize).prop_map(Step::Forget),
        2 => (reader(), prop::bool::weighted(0.4))
            .prop_map(|(reader, paused)| Step::Pause { reader, paused }),
        6 => (1..4u32).prop_map(Step::Pass),
        1 => Just(Step::Reopen),
    ]
}

/// Most is done where there is an order and where all events are wanted.
fn reader() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(0usize), 1 => Just(1), 2 => Just(2)]
}

fn item() -> impl Strategy<Value = Item> {
    let parts = (0..60u8, prop::option::weighted(0.2, 0..20u8), 0..4u8);
    parts.prop_map(|(header, signed, body)| Item { header, signed, body: body.saturating_sub(2) })
}

fn picks(count: std::ops::Range<usize>) -> impl Strategy<Value = Picks> {
    let good = prop::bool::weighted(0.7);
    let (foreign, made_up) = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (reader(), vec(recent(), count), good, foreign, made_up).prop_map(
        |(reader, recent, good, foreign, made_up)| Picks { reader, recent, good, foreign, made_up },
    )
}

fn recent() -> impl Strategy<Value = usize> {
    prop_oneof![7 => 0..6usize, 1 => 0..1000usize]
}

/// Events go by any number: what is beyond the last begins again at the first.
fn selection() -> impl Strategy<Value = Selection> {
    let events = prop::option::weighted(0.2, vec(0..1000usize, 0..6));
    let chat = prop::option::weighted(0.2, 0..2u8);
    let rare = prop::option::weighted(0.1, any::<bool>());
    (prop::bool::weighted(0.2), events, chat, rare)
        .prop_map(|(dead, events, chat, rare)| Selection { dead, events, chat, rare })
}
