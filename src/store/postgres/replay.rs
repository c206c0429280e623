//! Finished and dead work that becomes due again: on PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::{PgConnection, Row};

use super::session::Failure;
use super::work::{self, Settings};
use super::{PostgresStore, append, transaction};
use crate::clock::Time;
use crate::event::Sequence;
use crate::replay::{Place, Replayed, Selection};
use crate::store::replay::{Meant, Way, beyond, bound, least_state, looks, way};
use crate::store::{Replays, Result};

type Done<T> = std::result::Result<T, Failure>;

#[async_trait]
impl Replays for PostgresStore {
    async fn replay(
        &self,
        consumer: &str,
        selection: Arc<Selection>,
        from: Option<Place>,
        limit: usize,
    ) -> Result<Replayed> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, selection), |connection| step(
            connection, &consumer, &selection, from, limit
        ))
    }
}

async fn step(
    connection: &mut PgConnection,
    consumer: &str,
    selection: &Selection,
    from: Option<Place>,
    limit: usize,
) -> Done<Replayed> {
    sqlx::query(append::LOCK).execute(&mut *connection).await?;
    let settings = work::settings(connection, consumer).await?;
    let place = match from {
        Some(place) => place,
        None => Place { after: 0, last: last(connection).await?, began: settings.now },
    };
    let looked_at = look(connection, settings.id, selection, &place, looks(limit)).await?;
    let meant = meant(connection, &settings, selection, &place, &looked_at, limit).await?;
    let count = if meant.is_empty() { 0 } else { again(connection, &settings, &meant).await? };
    Ok(Replayed { count, next: beyond(&place, &looked_at, &meant, limit) })
}

/// The last number given, to an event or to a place in the order of work.
async fn last(connection: &mut PgConnection) -> Done<Sequence> {
    let sql = "SELECT last_value FROM sequence";
    Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
}

/// The next events that may be meant.
async fn look(
    connection: &mut PgConnection,
    consumer: i64,
    selection: &Selection,
    place: &Place,
    limit: usize,
) -> Done<Vec<Sequence>> {
    // Materialized, because the planner might go through all events for the order.
    let ids = "WITH named AS MATERIALIZED (SELECT seq FROM events WHERE id = ANY ($4))
        SELECT seq FROM named WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3";
    let conversation = "SELECT seq FROM events
        WHERE conversation = $4 AND seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3";
    let dead = "SELECT event_seq FROM work
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
        Way::Ids(ids) => query.bind(ids),
        Way::Conversation(hash) => query.bind(hash),
        Way::Dead | Way::All => query.bind(consumer),
    };
    Ok(query.fetch_all(connection).await?)
}

/// The first `limit` of these events that are meant, in order of receipt.
async fn meant(
    connection: &mut PgConnection,
    settings: &Settings,
    selection: &Selection,
    place: &Place,
    looked_at: &[Sequence],
    limit: usize,
) -> Done<Vec<Meant>> {
    // A list and no join, because the planner would else read all work of the consumer as long as
    // it takes the table for a small one; so too below.
    let sql = "SELECT w.event_seq, CASE c.ordering WHEN 'conversation' THEN e.conversation END
        FROM work AS w
        JOIN events AS e ON e.seq = w.event_seq
        JOIN consumers AS c ON c.id = w.consumer_id
        WHERE w.consumer_id = $1 AND w.event_seq = ANY ($2)
          AND w.state >= $3 AND NOT (w.finished_at > $4 AND w.finished_at <= $5)
          AND ($6::text IS NULL OR e.channel = $6)
          AND ($7::text IS NULL OR (SELECT name FROM sources WHERE id = e.source_id) = $7)
          AND ($8::text IS NULL OR e.type = $8)
          AND ($9::text IS NULL OR e.subject = $9)
          AND ($10::bigint IS NULL OR e.received_at >= $10)
          AND ($11::bigint IS NULL OR e.received_at < $11)
        ORDER BY w.event_seq LIMIT $12";
    // No row can hold what PostgreSQL's text cannot.
    let text = |value: &Option<String>| value.as_ref().map(|text| text.replace('\0', "\u{fffd}"));
    let query = sqlx::query(sql).bind(settings.id).bind(looked_at);
    // Between the two, and not just later: the clock may have gone back since it was finished.
    let query = query.bind(least_state(selection)).bind(place.began.micros());
    let query = query.bind(settings.now.micros());
    let query = query.bind(text(&selection.channel)).bind(text(&selection.source));
    let query = query.bind(text(&selection.event_type)).bind(text(&selection.conversation));
    let query = query.bind(selection.since.map(Time::micros));
    let query = query.bind(selection.until.map(Time::micros)).bind(bound(limit));
    let rows = query.fetch_all(connection).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Makes this work due, in this order behind all work there is, and tells how much of it there still
/// was: it may have been removed meanwhile.
async fn again(connection: &mut PgConnection, settings: &Settings, meant: &[Meant]) -> Done<usize> {
    let (events, of_events): (Vec<Sequence>, Vec<Option<i64>>) = meant.iter().copied().unzip();
    let mut lanes: Vec<i64> = of_events.iter().filter_map(|lane| *lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let sql = "INSERT INTO lanes (consumer_id, lane) SELECT $1, * FROM unnest($2::bigint[])
               ON CONFLICT (consumer_id, lane) DO NOTHING";
    sqlx::query(sql).bind(settings.id).bind(&lanes).execute(&mut *connection).await?;
    // One by one, because the planner would else read all lanes for the sake of their order.
    let sql = "SELECT 1 FROM unnest($2::bigint[]) AS w (lane) CROSS JOIN LATERAL (
                   SELECT 1 FROM lanes WHERE consumer_id = $1 AND lane = w.lane FOR UPDATE) AS l";
    sqlx::query(sql).bind(settings.id).bind(&lanes).execute(&mut *connection).await?;
    let sql = "SELECT setval('sequence', nextval('sequence') + $1 - 1) - $1";
    let query = sqlx::query_scalar(sql).bind(bound(meant.len()));
    let last: Sequence = query.fetch_one(&mut *connection).await?;
    let sql = "UPDATE work SET pos = $4 + a.place, lane = a.lane, state = 0, attempt = 0,
                      due_at = $5, since = $5, receipt = NULL, finished_at = NULL
               FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (seq, lane, place)
               WHERE work.consumer_id = $1 AND work.event_seq = ANY ($2)
                 AND work.event_seq = a.seq AND work.state >= 2";
    let query = sqlx::query(sql).bind(settings.id).bind(&events).bind(of_events).bind(last);
    let changed = query.bind(settings.now.micros()).execute(&mut *connection).await?;
    let sql = "DELETE FROM attempts AS a USING work AS w
               WHERE w.consumer_id = $1 AND w.event_seq = ANY ($2)
                 AND a.consumer_id = w.consumer_id AND a.event_seq = w.event_seq";
    sqlx::query(sql).bind(settings.id).bind(&events).execute(&mut *connection).await?;
    work::refresh_lanes(connection, settings.id, lanes.into_iter()).await?;
    Ok(usize::try_from(changed.rows_affected()).unwrap_or(usize::MAX))
}
