//! What both databases read in the same words.

use std::collections::HashMap;

use crate::clock::Time;
use crate::event::{Event, EventQuery, Sequence};
use crate::store::plan::conversation;
use crate::work::STATES;

/// The columns of an event, from `events AS e`, `sources AS s` and `bodies AS b`.
macro_rules! event_columns {
    () => {
        "e.seq, e.id, s.name, e.received_at, e.type, e.channel, e.account, e.external_id, e.origin,
         e.subject, e.occurred_at, b.body"
    };
}
pub(super) use event_columns;

/// Reads the columns of [`event_columns`].
macro_rules! event {
    ($row:expr) => {
        $crate::event::Event {
            sequence: $row.get(0),
            id: $row.get(1),
            source: $row.get(2),
            received_at: $crate::clock::Time::from_micros($row.get(3)),
            attributes: $crate::event::Attributes {
                event_type: $row.get(4),
                channel: $row.get(5),
                account: $row.get(6),
                external_id: $row.get(7),
                origin: $row.get(8),
                subject: $row.get(9),
                time: $row.get::<Option<i64>, _>(10).map($crate::clock::Time::from_micros),
            },
            body: $row.get::<Vec<u8>, _>(11).into(),
        }
    };
}
pub(super) use event;

/// One event by its id, with what is known about it.
pub(super) const DETAIL: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", e.receipts, e.last_received_at, e.secret, e.flags, b.headers
     FROM events AS e JOIN sources AS s ON s.id = e.source_id
     JOIN bodies AS b ON b.event_seq = e.seq WHERE e.id = $1"
);

/// The other bodies of an event.
pub(super) const VARIANTS: &str = "SELECT received_at, receipts, body_hash, body FROM variants
    WHERE event_seq = $1 ORDER BY received_at, body_hash";

/// The work of all consumers with an event.
pub(super) const WORK_OF_EVENT: &str = "SELECT c.name, w.state, w.attempt, w.due_at, w.finished_at
    FROM consumers AS c JOIN work AS w ON w.consumer_id = c.id AND w.event_seq = $1
    ORDER BY c.name";

/// The failed attempts of all consumers at an event.
pub(super) const ATTEMPTS_OF_EVENT: &str = "SELECT c.name, a.attempt, a.at, a.error
    FROM consumers AS c JOIN attempts AS a ON a.consumer_id = c.id AND a.event_seq = $1
    ORDER BY c.name, a.attempt";

/// Reads a failed attempt from a row of whose it is, number, time and error.
macro_rules! attempt {
    ($row:expr) => {
        $crate::event::Attempt {
            attempt: $row.get(1),
            at: $crate::clock::Time::from_micros($row.get(2)),
            error: $row.get(3),
        }
    };
}
pub(super) use attempt;

/// Reads a row of [`DETAIL`], given the rows of [`VARIANTS`], [`WORK_OF_EVENT`] and
/// [`ATTEMPTS_OF_EVENT`].
macro_rules! detail {
    ($row:expr, $event:expr, $variants:expr, $work:expr, $attempts:expr) => {
        $crate::event::EventDetail {
            event: $event,
            receipts: $row.get(12),
            last_received_at: $crate::clock::Time::from_micros($row.get(13)),
            first_secret: $row.get(14),
            flags: $crate::event::Flags($row.get(15)),
            headers: $row.get(16),
            variants: $variants
                .iter()
                .map(|row| $crate::event::Variant {
                    received_at: $crate::clock::Time::from_micros(row.get(0)),
                    receipts: row.get(1),
                    body_hash: row.get::<Vec<u8>, _>(2).try_into().unwrap_or_default(),
                    body: row.get::<Vec<u8>, _>(3).into(),
                })
                .collect(),
            work: $work
                .iter()
                .map(|row| $crate::event::WorkState {
                    consumer: row.get(0),
                    state: $crate::store::query::state_name(row.get(1)),
                    attempt: row.get(2),
                    due_at: row.get::<Option<i64>, _>(3).map($crate::clock::Time::from_micros),
                    finished_at: row.get::<Option<i64>, _>(4).map($crate::clock::Time::from_micros),
                    attempts: $attempts
                        .iter()
                        .filter(|tried| tried.get::<&str, _>(0) == row.get::<&str, _>(0))
                        .map(|tried| $crate::store::query::attempt!(tried))
                        .collect(),
                })
                .collect(),
        }
    };
}
pub(super) use detail;

/// The name of a work row's state.
pub(super) fn state_name(state: i64) -> &'static str {
    usize::try_from(state).ok().and_then(|state| STATES.get(state)).unwrap_or(&"unknown")
}

/// All sources that are not forgotten.
pub(super) const SOURCES: &str = "SELECT s.id, s.kind, s.name, s.account, s.created_at,
        s.last_received_at, s.stored, s.duplicates, s.conflicts, s.state, s.detail, s.state_since,
        p.source_id, p.next_offset, p.last_ok_at, p.pending, p.lease_holder,
        (SELECT count(*) FROM gaps AS g WHERE g.source_id = s.id AND g.acknowledged_at IS NULL)
    FROM sources AS s LEFT JOIN pollers AS p ON p.source_id = s.id
    WHERE s.forgotten_at IS NULL ORDER BY s.kind, s.name";

/// Reads a row of [`SOURCES`].
macro_rules! source {
    ($row:expr) => {
        $crate::source::SourceKind::from_name($row.get(1)).map(|kind| $crate::source::Source {
            id: $crate::event::SourceId($row.get(0)),
            kind,
            name: $row.get(2),
            account: $row.get(3),
            created_at: $crate::clock::Time::from_micros($row.get(4)),
            last_received_at: $row.get::<Option<i64>, _>(5).map($crate::clock::Time::from_micros),
            stored: $row.get(6),
            duplicates: $row.get(7),
            conflicts: $row.get(8),
            state: $crate::source::SourceState {
                name: $row.get(9),
                detail: $row.get(10),
                since: $row.get::<Option<i64>, _>(11).map($crate::clock::Time::from_micros),
            },
            poller: $row.get::<Option<i64>, _>(12).map(|_| $crate::source::Poller {
                next_offset: $row.get(13),
                last_ok_at: $row.get::<Option<i64>, _>(14).map($crate::clock::Time::from_micros),
                pending: $row.get(15),
                holder: $row.get(16),
            }),
            open_gaps: $row.get(17),
        })
    };
}
pub(super) use source;

/// Possible losses, newest first.
pub(super) const GAPS: &str = "SELECT g.id, s.name, g.reason, g.from_id, g.to_id, g.from_at,
        g.to_at, g.detail, g.acknowledged_at
    FROM gaps AS g JOIN sources AS s ON s.id = g.source_id
    WHERE CAST($1 AS TEXT) IS NULL OR s.name = $1 ORDER BY g.id DESC LIMIT $2";

/// Reads a row of [`GAPS`].
macro_rules! gap {
    ($row:expr) => {{
        let time = $crate::clock::Time::from_micros;
        let ids: (Option<i64>, Option<i64>) = ($row.get(3), $row.get(4));
        $crate::source::GapReason::from_name($row.get(2)).map(|reason| $crate::source::Gap {
            id: $row.get(0),
            source: $row.get(1),
            noticed: $crate::source::NewGap {
                reason,
                ids: ids.0.zip(ids.1),
                from: $row.get::<Option<i64>, _>(5).map(time),
                to: time($row.get(6)),
                detail: $row.get(7),
            },
            acknowledged_at: $row.get::<Option<i64>, _>(8).map(time),
        })
    }};
}
pub(super) use gap;

/// Removes the oldest of a source's quarantine beyond so many rows or bytes; the newest stays
/// whatever its size.
pub(super) const EVICT: &str = "DELETE FROM quarantine WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER newest AS place, sum(size) OVER newest AS bytes
        FROM quarantine WHERE source_id = $1 AND kind = $2 WINDOW newest AS (ORDER BY id DESC)
    ) AS held WHERE place > $3 OR (bytes > $4 AND place > 1))";

/// The quarantine of a source, newest first.
pub(super) const QUARANTINED: &str = "SELECT kind, reason, received_at, peer, headers, body
    FROM quarantine WHERE source_id = $1 ORDER BY id DESC";

/// Reads a row of [`QUARANTINED`].
macro_rules! refused {
    ($row:expr, $source:expr, $kind:expr) => {
        $crate::source::Refused {
            source: $source,
            kind: $kind,
            reason: $row.get(1),
            received_at: $crate::clock::Time::from_micros($row.get(2)),
            peer: $row.get(3),
            headers: $row.get(4),
            body: $row.get::<Vec<u8>, _>(5).into(),
        }
    };
}
pub(super) use refused;

/// What must not be there: a sentence and the count of it.
pub(super) const AUDIT: [(&str, &str); 11] = [
    (
        "unfinished work in a lane that does not show its head",
        "SELECT count(*) FROM (
             SELECT consumer_id, lane, min(pos) AS head FROM work
             WHERE state < 2 AND lane IS NOT NULL GROUP BY consumer_id, lane) AS w
         LEFT JOIN lanes AS l ON l.consumer_id = w.consumer_id AND l.lane = w.lane
         WHERE l.head IS NULL OR l.head <> w.head",
    ),
    (
        "lanes whose due time is not that of their head",
        "SELECT count(*) FROM lanes AS l
         LEFT JOIN work AS w ON w.consumer_id = l.consumer_id AND w.lane = l.lane
                            AND w.pos = l.head AND w.state < 2
         WHERE l.head IS NOT NULL AND (w.due_at IS NULL OR w.due_at <> l.due_at)",
    ),
    (
        "leased work that the claim of its lane's head does not hold",
        "SELECT count(*) FROM work AS w
         JOIN lanes AS l ON l.consumer_id = w.consumer_id AND l.lane = w.lane
         JOIN work AS h ON h.consumer_id = w.consumer_id AND h.lane = w.lane AND h.pos = l.head
                       AND h.state < 2
         WHERE w.state = 1 AND (h.state <> 1 OR h.receipt <> w.receipt)",
    ),
    (
        "work of events that are gone",
        "SELECT count(*) FROM work AS w LEFT JOIN events AS e ON e.seq = w.event_seq
         WHERE e.seq IS NULL",
    ),
    (
        "attempts of events that are gone",
        "SELECT count(*) FROM attempts AS a LEFT JOIN events AS e ON e.seq = a.event_seq
         WHERE e.seq IS NULL",
    ),
    (
        "effects of events that are gone",
        "SELECT count(*) FROM effects AS f LEFT JOIN events AS e ON e.seq = f.event_seq
         WHERE e.seq IS NULL",
    ),
    (
        "variants under no identity",
        "SELECT count(*) FROM variants AS v
         WHERE NOT EXISTS (SELECT 1 FROM identities AS i WHERE i.event_seq = v.event_seq)",
    ),
    (
        "consumers that count another number of pieces of work than they have",
        "SELECT count(*) FROM consumers AS c WHERE work_count <> (
             SELECT count(*) FROM work WHERE consumer_id = c.id)",
    ),
    (
        "events without a body",
        "SELECT count(*) FROM events AS e LEFT JOIN bodies AS b ON b.event_seq = e.seq
         WHERE b.event_seq IS NULL",
    ),
    (
        "bodies without an event",
        "SELECT count(*) FROM bodies AS b LEFT JOIN events AS e ON e.seq = b.event_seq
         WHERE e.seq IS NULL",
    ),
    (
        "identities that name nothing and do not expire",
        "SELECT count(*) FROM identities AS i LEFT JOIN events AS e ON e.seq = i.event_seq
         WHERE e.seq IS NULL AND i.expires_at IS NULL",
    ),
];

/// Reads how a consumer stood `$now`: its settings, which are read already, then from the tenth
/// column on pause, filling, times, all work, ready, delayed, leased, oldest due, dead.
macro_rules! state {
    ($row:expr, $consumer:expr, $now:expr) => {{
        let time = $crate::clock::Time::from_micros;
        let (ready, delayed, leased): (i64, i64, i64) = ($row.get(14), $row.get(15), $row.get(16));
        let (all, dead): (i64, i64) = ($row.get(13), $row.get(18));
        let due = $row.get::<Option<i64>, _>(17).map(time).filter(|due| *due <= $now);
        $crate::consumer::ConsumerState {
            consumer: $consumer,
            at: $now,
            paused: $row.get::<i64, _>(9) != 0,
            filling: $row.get(10),
            created_at: time($row.get(11)),
            last_claim_at: $row.get::<Option<i64>, _>(12).map(time),
            ready,
            delayed,
            leased,
            done: all - ready - delayed - leased - dead,
            dead,
            oldest_ready: due.map(|due| $now.since(due)),
        }
    }};
}
pub(super) use state;

/// A value for a placeholder.
pub(super) enum Value {
    Text(String),
    Integer(i64),
}

/// The numbers of a page, given rows of number and size, and whether there may be more.
pub(super) fn page(
    rows: impl Iterator<Item = (Sequence, i64)>,
    query: &EventQuery,
) -> (Vec<Sequence>, bool) {
    fitting(rows, query.limit, query.max_bytes)
}

/// As much of these rows of number and size as fits, but always one, and whether there may be more.
pub(super) fn fitting(
    rows: impl Iterator<Item = (Sequence, i64)>,
    limit: usize,
    max_bytes: usize,
) -> (Vec<Sequence>, bool) {
    let mut bytes = 0usize;
    let mut page = Vec::new();
    for (seq, size) in rows {
        bytes = bytes.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        if bytes > max_bytes && !page.is_empty() {
            return (page, true);
        }
        page.push(seq);
    }
    let more = page.len() >= limit;
    (page, more)
}

/// `events` in the order of `page`.
pub(super) fn in_order(page: &[Sequence], events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut events: HashMap<Sequence, Event> =
        events.map(|event| (event.sequence, event)).collect();
    page.iter().filter_map(|seq| events.remove(seq)).collect()
}

/// The statement that answers `query` with number and size of each event, and its values.
pub(super) fn events(query: &EventQuery) -> (String, Vec<Value>) {
    let mut sql = "SELECT e.seq, e.size FROM events AS e JOIN sources AS s ON s.id = e.source_id
         WHERE true"
        .to_owned();
    let mut values = Vec::new();
    let mut also = |condition: &str, value: Value| {
        values.push(value);
        sql.push_str(&format!(" AND {condition} ${}", values.len()));
    };
    let text = |value: &String| Value::Text(value.clone());
    let time = |value: Time| Value::Integer(value.micros());
    if let Some(channel) = &query.channel {
        also("e.channel =", text(channel));
    }
    if let Some(source) = &query.source {
        also("s.name =", text(source));
    }
    if let Some(event_type) = &query.event_type {
        also("e.type =", text(event_type));
    }
    if let Some(subject) = &query.conversation {
        also("e.conversation =", Value::Integer(conversation(subject)));
        also("e.subject =", text(subject));
    }
    if let Some(since) = query.since {
        also("e.received_at >=", time(since));
    }
    if let Some(until) = query.until {
        also("e.received_at <", time(until));
    }
    if let Some(after) = query.after {
        let beyond = if query.ascending { "e.seq >" } else { "e.seq <" };
        also(beyond, Value::Integer(after));
    }
    if let Some(through) = query.through {
        also("e.seq <=", Value::Integer(through));
    }
    let limit = Sequence::try_from(query.limit).unwrap_or(Sequence::MAX);
    let order = if query.ascending { "ASC" } else { "DESC" };
    sql.push_str(&format!(" ORDER BY e.seq {order} LIMIT {limit}"));
    (sql, values)
}
