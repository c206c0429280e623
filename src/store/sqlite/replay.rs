//! Finished and dead work that becomes due again: on SQLite.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection};

use super::error::of;
use super::{SqliteStore, work};
use crate::clock::Time;
use crate::event::Sequence;
use crate::replay::{Place, Replayed, Selection};
use crate::store::replay::{Meant, Way, beyond, bound, least_state, looks, way};
use crate::store::{Replays, Result};

#[async_trait]
impl Replays for SqliteStore {
    async fn replay(
        &self,
        consumer: &str,
        selection: Arc<Selection>,
        from: Option<Place>,
        limit: usize,
    ) -> Result<Replayed> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(
                    async move { step(connection, now, &consumer, &selection, from, limit).await },
                )
            })
            .await
    }
}

async fn step(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    selection: &Selection,
    from: Option<Place>,
    limit: usize,
) -> Result<Replayed> {
    let consumer = work::settings(connection, consumer).await?.id;
    let place = match from {
        Some(place) => place,
        None => Place { after: 0, last: last(connection).await?, began: now },
    };
    let looked_at = look(connection, consumer, selection, &place, looks(limit)).await?;
    let meant = meant(connection, now, consumer, selection, &place, &looked_at, limit).await?;
    if !meant.is_empty() {
        again(connection, now, consumer, &meant).await?;
    }
    Ok(Replayed { count: meant.len(), next: beyond(&place, &looked_at, &meant, limit) })
}

/// The last number given, to an event or to a place in the order of work.
async fn last(connection: &mut SqliteConnection) -> Result<Sequence> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'events'";
    let last: Option<Sequence> =
        sqlx::query_scalar(sql).fetch_optional(connection).await.map_err(of)?;
    Ok(last.unwrap_or(0))
}

/// The next events that may be meant.
async fn look(
    connection: &mut SqliteConnection,
    consumer: i64,
    selection: &Selection,
    place: &Place,
    limit: usize,
) -> Result<Vec<Sequence>> {
    let ids = "SELECT DISTINCT e.seq
        FROM json_each($4) AS j CROSS JOIN events AS e ON e.id = unhex(j.value)
        WHERE e.seq > $1 AND e.seq <= $2 ORDER BY e.seq LIMIT $3";
    let conversation = "SELECT seq FROM events INDEXED BY events_conversation
        WHERE conversation = $4 AND conversation IS NOT NULL AND seq > $1 AND seq <= $2
        ORDER BY seq LIMIT $3";
    let dead = "SELECT event_seq FROM work INDEXED BY work_dead_event
        WHERE consumer_id = $4 AND state = 3 AND event_seq > $1 AND event_seq <= $2
        ORDER BY event_seq LIMIT $3";
    let all = "SELECT event_seq FROM work
        WHERE consumer_id = $4 AND event_seq > $1 AND event_seq <= $2
        ORDER BY event_seq LIMIT $3";
    let way = way(selection);
    let sql = match way {
        Way::Ids(_) => ids,
        Way::Conversation(_) => conversation,
        Way::Dead => dead,
        Way::All => all,
    };
    let query = sqlx::query_scalar(sql).bind(place.after).bind(place.last);
    let query = query.bind(bound(limit));
    let query = match way {
        Way::Ids(ids) => query.bind(super::json(ids.iter().map(|id| id.simple().to_string()))),
        Way::Conversation(hash) => query.bind(hash),
        Way::Dead | Way::All => query.bind(consumer),
    };
    query.fetch_all(connection).await.map_err(of)
}

/// The first `limit` of these events that are meant, in order of receipt.
async fn meant(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: i64,
    selection: &Selection,
    place: &Place,
    looked_at: &[Sequence],
    limit: usize,
) -> Result<Vec<Meant>> {
    let sql = "SELECT w.event_seq, CASE c.ordering WHEN 'conversation' THEN e.conversation END
        FROM json_each($2) AS j
        CROSS JOIN work AS w ON w.consumer_id = $1 AND w.event_seq = j.value
        CROSS JOIN events AS e ON e.seq = w.event_seq
        CROSS JOIN consumers AS c ON c.id = w.consumer_id
        WHERE w.state >= $3 AND NOT (w.finished_at > $4 AND w.finished_at <= $5)
          AND ($6 IS NULL OR e.channel = $6)
          AND ($7 IS NULL OR (SELECT name FROM sources WHERE id = e.source_id) = $7)
          AND ($8 IS NULL OR e.type = $8)
          AND ($9 IS NULL OR e.subject = $9)
          AND ($10 IS NULL OR e.received_at >= $10)
          AND ($11 IS NULL OR e.received_at < $11)
        ORDER BY w.event_seq LIMIT $12";
    let query = sqlx::query(sql).bind(consumer).bind(super::json(looked_at.iter().copied()));
    // Between the two, and not just later: the clock may have gone back since it was finished.
    let query = query.bind(least_state(selection)).bind(place.began.micros()).bind(now.micros());
    let query = query.bind(&selection.channel).bind(&selection.source);
    let query = query.bind(&selection.event_type).bind(&selection.conversation);
    let query = query.bind(selection.since.map(Time::micros));
    let query = query.bind(selection.until.map(Time::micros)).bind(bound(limit));
    let rows = query.fetch_all(connection).await;
    Ok(rows.map_err(of)?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Makes this work due, in this order behind all work there is.
async fn again(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: i64,
    meant: &[Meant],
) -> Result<()> {
    let sql = "UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = 'events' RETURNING seq - $1";
    let query = sqlx::query_scalar(sql).bind(bound(meant.len()));
    let last: Sequence = query.fetch_one(&mut *connection).await.map_err(of)?;
    let events = super::json(meant.iter().map(|(event, _)| *event));
    let sql = "DELETE FROM attempts
               WHERE consumer_id = $1 AND event_seq IN (SELECT value FROM json_each($2))";
    let query = sqlx::query(sql).bind(consumer).bind(events);
    query.execute(&mut *connection).await.map_err(of)?;
    // Not an update that joins, because it would take its own table first, which is all work.
    let sql = "INSERT INTO work (consumer_id, event_seq, pos, lane, due_at, since)
               SELECT $1, value ->> 0, $3 + 1 + key, value ->> 1, $4, $4 FROM json_each($2)
               WHERE true
               ON CONFLICT (consumer_id, event_seq) DO UPDATE SET pos = excluded.pos,
                   lane = excluded.lane, state = 0, attempt = 0, due_at = excluded.due_at,
                   since = excluded.since, receipt = NULL, finished_at = NULL";
    let pairs = meant.iter().map(|(event, lane)| serde_json::json!([event, lane]));
    let query = sqlx::query(sql).bind(consumer).bind(super::json(pairs)).bind(last);
    query.bind(now.micros()).execute(&mut *connection).await.map_err(of)?;
    let lanes = || meant.iter().filter_map(|(_, lane)| *lane);
    let sql = "INSERT INTO lanes (consumer_id, lane) SELECT $1, value FROM json_each($2)
               WHERE true ON CONFLICT DO NOTHING";
    let query = sqlx::query(sql).bind(consumer).bind(super::json(lanes()));
    query.execute(&mut *connection).await.map_err(of)?;
    work::refresh_lanes(connection, consumer, lanes()).await
}
