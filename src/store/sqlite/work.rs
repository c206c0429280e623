//! Work on SQLite: made with the events, claimed through lanes, finished by receipt.
//!
//! A lane shows its first unfinished work: place, due time and since when. Whatever changes that
//! work brings the lane up to date in the same transaction, so that a claim finds all there is to
//! find by one index, whether it is new, waiting for its retry or leased by a worker that died.

use std::collections::HashSet;

use sqlx::{Row, SqliteConnection};

use super::error::of;
use crate::clock::{Time, from_micros};
use crate::event::Sequence;
use crate::retry::Backoff;
use crate::store::attempts;
use crate::store::due::{self, Claimed, Due, due};
use crate::store::{Result, StoreError};
use crate::work::{ClaimRequest, LEASE_RAN_OUT, Receipt};

/// Makes the work of the events numbered `first..=last` for every consumer that wants them.
pub(super) async fn make(
    connection: &mut SqliteConnection,
    now: Time,
    first: Sequence,
    last: Sequence,
) -> Result<()> {
    let sql = "INSERT INTO work (consumer_id, event_seq, pos, lane, due_at, since)
        SELECT c.id, e.seq, e.seq, CASE c.ordering WHEN 'conversation' THEN e.conversation END, $3, $3
        FROM events AS e CROSS JOIN consumers AS c
        WHERE e.seq BETWEEN $1 AND $2
          AND (c.channels = '[]' OR e.channel IN (SELECT value FROM json_each(c.channels)))
          AND (c.types = '[]' OR e.type IN (SELECT value FROM json_each(c.types)))
          AND (c.source_names = '[]' OR (SELECT name FROM sources WHERE id = e.source_id)
                                        IN (SELECT value FROM json_each(c.source_names)))";
    let query = sqlx::query(sql).bind(first).bind(last).bind(now.micros());
    query.execute(&mut *connection).await.map_err(of)?;
    let sql = "UPDATE consumers AS c SET work_count = work_count + (
                   SELECT count(*) FROM work WHERE consumer_id = c.id AND event_seq BETWEEN $1 AND $2)";
    sqlx::query(sql).bind(first).bind(last).execute(&mut *connection).await.map_err(of)?;
    let sql = "INSERT INTO lanes (consumer_id, lane, head, due_at, since)
        SELECT c.id, w.lane, min(w.pos), $3, $3
        FROM consumers AS c CROSS JOIN work AS w ON w.consumer_id = c.id
        WHERE w.event_seq BETWEEN $1 AND $2 AND w.lane IS NOT NULL
        GROUP BY c.id, w.lane
        ON CONFLICT DO UPDATE SET head = excluded.head, due_at = excluded.due_at,
                                  since = excluded.since
            WHERE lanes.head IS NULL";
    let query = sqlx::query(sql).bind(first).bind(last).bind(now.micros());
    query.execute(connection).await.map(drop).map_err(of)
}

/// A consumer's settings, as far as work needs them.
pub(super) struct Settings {
    pub(super) id: i64,
    pub(super) lease: i64,
    pub(super) max_attempts: i64,
    pub(super) backoff: Backoff,
    /// Claims are empty: an operator wants it so, or the consumer is being filled.
    pub(super) paused: bool,
}

pub(super) async fn settings(
    connection: &mut SqliteConnection,
    consumer: &str,
) -> Result<Settings> {
    let sql = "SELECT id, lease, max_attempts, backoff_first, backoff_max,
                      paused <> 0 OR fill_next IS NOT NULL
               FROM consumers WHERE name = $1";
    let row = sqlx::query(sql).bind(consumer).fetch_optional(connection).await.map_err(of)?;
    let row = row.ok_or_else(|| StoreError::UnknownConsumer(consumer.to_owned()))?;
    Ok(Settings {
        id: row.get(0),
        lease: row.get(1),
        max_attempts: row.get(2),
        backoff: Backoff { first: from_micros(row.get(3)), max: from_micros(row.get(4)) },
        paused: row.get(5),
    })
}

/// Leases what is due as [`crate::store::Store::claim`] says. None if it has buried so much that
/// the rest is for another transaction.
pub(super) async fn claim(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    request: &ClaimRequest,
) -> Result<Option<Claimed>> {
    let settings = settings(connection, consumer).await?;
    if settings.paused {
        return Ok(Some(Claimed::default()));
    }
    let mut looks = 0;
    let chosen = loop {
        let heads = due_heads(connection, now, settings.id, request.max).await?;
        let due = follow(connection, now, &settings, &heads, request.max).await?;
        let chosen = due::select(due, request);
        let spent = due::spent(&chosen, settings.max_attempts);
        if spent.is_empty() {
            break chosen;
        }
        give_up(connection, now, &settings, &spent).await?;
        looks += 1;
        if looks == due::LOOKS {
            return Ok(None);
        }
    };
    if chosen.is_empty() {
        return Ok(Some(Claimed::default()));
    }
    // Only what is taken, because the rest may still be finished by whoever had it.
    give_up(connection, now, &settings, &due::expired(&chosen)).await?;
    let lease_until = now + request.lease.unwrap_or(from_micros(settings.lease));
    let claimed = Claimed::new(&chosen, lease_until);
    let sql = "UPDATE work SET state = 1, attempt = attempt + 1, due_at = $3, since = $4,
                      receipt = $5
               WHERE consumer_id = $1 AND event_seq IN (SELECT value FROM json_each($2))";
    let events = super::json(chosen.iter().map(|due| due.event));
    let query = sqlx::query(sql).bind(settings.id).bind(events).bind(lease_until.micros());
    let query = query.bind(now.micros()).bind(&claimed.token[..]);
    query.execute(&mut *connection).await.map_err(of)?;
    refresh_lanes(connection, settings.id, chosen.iter().filter_map(|due| due.lane)).await?;
    Ok(Some(claimed))
}

/// Ends the claims of these heads, whose leases ran out: each becomes ready again, or dead after
/// its last attempt, and the rest of such a claim goes back without having counted.
async fn give_up(
    connection: &mut SqliteConnection,
    now: Time,
    settings: &Settings,
    expired: &[Due],
) -> Result<()> {
    let failed = attempts::expired(expired, settings.max_attempts);
    super::attempts::fail(connection, now, settings.id, &failed, LEASE_RAN_OUT).await
}

/// A due head: of a lane, or of nothing but itself.
async fn due_heads(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: i64,
    max: usize,
) -> Result<Vec<Due>> {
    let lanes = "SELECT l.lane, w.event_seq, w.due_at, w.pos, w.state, w.attempt, e.size
        FROM (SELECT lane, head, due_at FROM lanes
              WHERE consumer_id = $1 AND due_at <= $2 ORDER BY due_at, head LIMIT $3) AS l
        CROSS JOIN work AS w INDEXED BY work_lane
            ON w.consumer_id = $1 AND w.lane = l.lane AND w.pos = l.head AND w.state < 2
               AND w.lane IS NOT NULL
        CROSS JOIN events AS e ON e.seq = w.event_seq";
    let single = "SELECT w.lane, w.event_seq, w.due_at, w.pos, w.state, w.attempt, e.size
        FROM (SELECT * FROM work INDEXED BY work_due
              WHERE consumer_id = $1 AND lane IS NULL AND state < 2 AND due_at <= $2
              ORDER BY due_at, pos LIMIT $3) AS w
        CROSS JOIN events AS e ON e.seq = w.event_seq";
    let mut heads = Vec::new();
    for sql in [lanes, single] {
        let query = sqlx::query(sql).bind(consumer).bind(now.micros()).bind(limit(max));
        let rows = query.fetch_all(&mut *connection).await.map_err(of)?;
        heads.extend(rows.iter().map(|row| due!(row)));
    }
    Ok(due::merge(heads, max))
}

/// What can be claimed behind each of these heads without leaving out any of its conversation.
async fn follow(
    connection: &mut SqliteConnection,
    now: Time,
    settings: &Settings,
    heads: &[Due],
    max: usize,
) -> Result<Vec<Due>> {
    // The lanes are visited in the order given and each by its index, so that the limit ends the
    // reading early however long a lane is. Each is read up to the first work that is put off:
    // what cannot be claimed must not take the room of the lanes that follow.
    let sql = "SELECT w.lane, w.event_seq, w.due_at, w.pos, w.state, w.attempt, e.size
        FROM json_each($2) AS l
        CROSS JOIN work AS w INDEXED BY work_lane
            ON w.consumer_id = $1 AND w.lane = l.value AND w.state < 2 AND w.lane IS NOT NULL
               AND w.pos < ifnull((
                   SELECT pos FROM (
                       SELECT pos, state, due_at FROM work INDEXED BY work_lane
                       WHERE consumer_id = $1 AND lane = l.value AND state < 2
                         AND lane IS NOT NULL ORDER BY pos LIMIT $3)
                   WHERE state = 0 AND due_at > $4 LIMIT 1), 9223372036854775807)
        CROSS JOIN events AS e ON e.seq = w.event_seq
        LIMIT $3";
    let lanes = super::json(heads.iter().filter_map(|head| head.lane));
    let query = sqlx::query(sql).bind(settings.id).bind(lanes).bind(limit(max));
    let rows = query.bind(now.micros()).fetch_all(connection).await.map_err(of)?;
    Ok(due::follow(heads, rows.iter().map(|row| due!(row)), now))
}

/// Finishes what these receipts hold as [`crate::store::Store::ack`] says.
pub(super) async fn ack(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    receipts: &[Receipt],
) -> Result<Vec<bool>> {
    let consumer = settings(connection, consumer).await?.id;
    let pairs = pairs(receipts);
    // Not joined, because an update takes its own table first, which is all work there ever was.
    let sql = "UPDATE work SET state = 2, due_at = NULL, finished_at = $3
               WHERE consumer_id = $1 AND state = 1 AND (event_seq, receipt) IN (
                   SELECT value ->> 0, unhex(value ->> 1) FROM json_each($2))
               RETURNING event_seq, receipt, lane";
    let query = sqlx::query(sql).bind(consumer).bind(&pairs).bind(now.micros());
    let rows = query.fetch_all(&mut *connection).await.map_err(of)?;
    let lanes: Vec<i64> = rows.iter().filter_map(|row| row.get(2)).collect();
    let mut done: HashSet<(Sequence, Vec<u8>)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    if done.len() < receipts.len() {
        let sql = "SELECT work.event_seq, work.receipt
            FROM (SELECT value ->> 0 AS seq, unhex(value ->> 1) AS token FROM json_each($2)) AS r
            CROSS JOIN work ON work.consumer_id = $1 AND work.event_seq = r.seq
                           AND work.receipt = r.token AND work.state = 2";
        let rows = sqlx::query(sql).bind(consumer).bind(&pairs).fetch_all(&mut *connection).await;
        done.extend(rows.map_err(of)?.iter().map(|row| (row.get(0), row.get(1))));
    }
    refresh_lanes(connection, consumer, lanes.into_iter()).await?;
    let is_done = |receipt: &Receipt| done.contains(&(receipt.sequence, receipt.token.to_vec()));
    Ok(receipts.iter().map(is_done).collect())
}

/// Receipts as a JSON list of number and token in hex.
pub(super) fn pairs(receipts: &[Receipt]) -> String {
    super::json(
        receipts
            .iter()
            .map(|receipt| serde_json::json!([receipt.sequence, hex::encode(receipt.token)])),
    )
}

/// Brings these lanes up to date with the first unfinished work of each.
pub(super) async fn refresh_lanes(
    connection: &mut SqliteConnection,
    consumer: i64,
    lanes: impl Iterator<Item = i64>,
) -> Result<()> {
    let mut lanes: Vec<i64> = lanes.collect();
    lanes.sort_unstable();
    lanes.dedup();
    if lanes.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE lanes SET (head, due_at, since) = (
                   SELECT pos, due_at, since FROM work INDEXED BY work_lane
                   WHERE work.consumer_id = lanes.consumer_id AND work.lane = lanes.lane
                     AND work.state < 2 AND work.lane IS NOT NULL ORDER BY pos LIMIT 1)
               WHERE consumer_id = $1 AND lane IN (SELECT value FROM json_each($2))";
    let query = sqlx::query(sql).bind(consumer).bind(super::json(lanes.into_iter()));
    query.execute(connection).await.map(drop).map_err(of)
}

/// Makes due what was put off by a clock that has gone back since: a lease is over when now is
/// before its start, and nothing waits for a time that was reckoned from one still to come.
pub(super) async fn clock_went_back(connection: &mut SqliteConnection, now: Time) -> Result<()> {
    for sql in [
        "UPDATE work SET due_at = $1, since = $1
         WHERE state < 2 AND lane IS NOT NULL AND since > $1",
        "UPDATE work SET due_at = $1, since = $1
         WHERE state < 2 AND lane IS NULL AND since > $1",
        "UPDATE lanes SET due_at = $1, since = $1 WHERE due_at IS NOT NULL AND since > $1",
    ] {
        sqlx::query(sql).bind(now.micros()).execute(&mut *connection).await.map_err(of)?;
    }
    Ok(())
}

/// See [`crate::store::Store::next_due`]; in microseconds, negative or zero if due.
pub(super) async fn next_due(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
) -> Result<Option<i64>> {
    let settings = settings(connection, consumer).await?;
    if settings.paused {
        return Ok(None);
    }
    let sql = "SELECT min(due_at) FROM (
                 SELECT * FROM (SELECT due_at FROM lanes
                   WHERE consumer_id = $1 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1)
                 UNION ALL
                 SELECT * FROM (SELECT due_at FROM work INDEXED BY work_due
                   WHERE consumer_id = $1 AND lane IS NULL AND state < 2 ORDER BY due_at LIMIT 1))";
    let due: Option<i64> =
        sqlx::query_scalar(sql).bind(settings.id).fetch_one(connection).await.map_err(of)?;
    Ok(due.map(|due| due.saturating_sub(now.micros())))
}

pub(super) fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}
