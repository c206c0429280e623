//! Work on PostgreSQL: made with the events, claimed through lanes, finished by receipt.
//!
//! Whoever changes the work of a lane holds the lane's row. A claim passes over lanes that somebody
//! holds; all others take them in one order. After such a lock, work is read in a new statement,
//! because the one that waited still sees what was there before.

use std::collections::HashSet;

use sqlx::{PgConnection, Row};

use super::session::Failure;
use crate::clock::{Time, from_micros};
use crate::event::Sequence;
use crate::retry::Backoff;
use crate::store::due::{self, Claimed, Due, due};
use crate::store::{StoreError, attempts};
use crate::work::{ClaimRequest, LEASE_RAN_OUT, Receipt};

type Done<T> = std::result::Result<T, Failure>;

/// A consumer's settings, as far as work needs them, and the database's time.
pub(super) struct Settings {
    pub(super) id: i64,
    pub(super) lease: i64,
    pub(super) max_attempts: i64,
    pub(super) backoff: Backoff,
    /// Claims are empty: an operator wants it so, or the consumer is being filled.
    pub(super) paused: bool,
    pub(super) now: Time,
}

pub(super) async fn settings(connection: &mut PgConnection, consumer: &str) -> Done<Settings> {
    let sql = concat!(
        "SELECT id, lease, max_attempts, backoff_first, backoff_max,
                paused <> 0 OR fill_next IS NOT NULL, ",
        super::now!(),
        " FROM consumers WHERE name = $1"
    );
    let row = sqlx::query(sql).bind(consumer).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| StoreError::UnknownConsumer(consumer.to_owned()))?;
    Ok(Settings {
        id: row.get(0),
        lease: row.get(1),
        max_attempts: row.get(2),
        backoff: Backoff { first: from_micros(row.get(3)), max: from_micros(row.get(4)) },
        paused: row.get(5),
        now: Time::from_micros(row.get(6)),
    })
}

/// Leases what is due as [`crate::store::Store::claim`] says. None if it has buried so much that
/// the rest is for another transaction.
pub(super) async fn claim(
    connection: &mut PgConnection,
    consumer: &str,
    request: &ClaimRequest,
) -> Done<Option<Claimed>> {
    let settings = settings(connection, consumer).await?;
    if settings.paused {
        return Ok(Some(Claimed::default()));
    }
    let mut looks = 0;
    let chosen = loop {
        let heads = lock_due(connection, &settings, request.max).await?;
        let lanes = behind(connection, &settings, &heads, request.max).await?;
        let due = due::follow(&heads, lanes.into_iter(), settings.now);
        let chosen = due::select(due, request);
        let spent = due::spent(&chosen, settings.max_attempts);
        if spent.is_empty() {
            break chosen;
        }
        give_up(connection, &settings, &spent).await?;
        looks += 1;
        if looks == due::LOOKS {
            return Ok(None);
        }
    };
    if chosen.is_empty() {
        return Ok(Some(Claimed::default()));
    }
    // Only what is taken, because the rest may still be finished by whoever had it.
    give_up(connection, &settings, &due::expired(&chosen)).await?;
    let lease = request.lease.unwrap_or(from_micros(settings.lease));
    let claimed = Claimed::new(&chosen, settings.now + lease);
    let sql = "UPDATE work SET state = 1, attempt = attempt + 1, due_at = $3, since = $4,
                      receipt = $5
               WHERE consumer_id = $1 AND event_seq = ANY ($2)";
    let events: Vec<Sequence> = chosen.iter().map(|due| due.event).collect();
    let query = sqlx::query(sql).bind(settings.id).bind(events);
    let query = query.bind(claimed.lease_until.micros()).bind(settings.now.micros());
    query.bind(&claimed.token[..]).execute(&mut *connection).await?;
    refresh_lanes(connection, settings.id, chosen.iter().filter_map(|due| due.lane)).await?;
    Ok(Some(claimed))
}

/// Locks what is due and held by nobody, oldest due first. Of a lane only the lane itself is told:
/// its work is read once it is locked.
async fn lock_due(
    connection: &mut PgConnection,
    settings: &Settings,
    max: usize,
) -> Done<Vec<Due>> {
    let lanes = "SELECT lane, 0::bigint, due_at, head, 0::bigint, 0::bigint, 0::bigint FROM lanes
        WHERE consumer_id = $1 AND due_at <= $2 ORDER BY due_at, head LIMIT $3
        FOR UPDATE SKIP LOCKED";
    // An array keeps the planner from joining before it has limited.
    let single = "SELECT w.lane, w.event_seq, w.due_at, w.pos, w.state, w.attempt, e.size
        FROM work AS w JOIN events AS e ON e.seq = w.event_seq
        WHERE w.consumer_id = $1 AND w.event_seq = ANY (ARRAY(
            SELECT event_seq FROM work
            WHERE consumer_id = $1 AND lane IS NULL AND state < 2 AND due_at <= $2
            ORDER BY due_at, pos LIMIT $3 FOR UPDATE SKIP LOCKED))
          AND w.state < 2 AND w.due_at <= $2";
    let mut heads = Vec::new();
    for sql in [lanes, single] {
        let query = sqlx::query(sql).bind(settings.id).bind(settings.now.micros());
        let rows = query.bind(limit(max)).fetch_all(&mut *connection).await?;
        heads.extend(rows.iter().map(|row| due!(row)));
    }
    Ok(due::merge(heads, max))
}

/// The first work of each of these lanes, as much as one claim can take in all. Each is read up to
/// the first work that is put off: what cannot be claimed must not take the room of the lanes that
/// follow.
async fn behind(
    connection: &mut PgConnection,
    settings: &Settings,
    heads: &[Due],
    max: usize,
) -> Done<Vec<Due>> {
    let lanes: Vec<i64> = heads.iter().filter_map(|head| head.lane).collect();
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT w.lane, w.event_seq, w.due_at, w.pos, w.state, w.attempt, e.size
        FROM unnest($2::bigint[]) WITH ORDINALITY AS l (lane, place)
        CROSS JOIN LATERAL (
            SELECT * FROM work WHERE consumer_id = $1 AND lane = l.lane AND state < 2
              AND pos < coalesce((
                  SELECT pos FROM (
                      SELECT pos, state, due_at FROM work
                      WHERE consumer_id = $1 AND lane = l.lane AND state < 2
                      ORDER BY pos LIMIT $3) AS first
                  WHERE state = 0 AND due_at > $4 LIMIT 1), 9223372036854775807)
            ORDER BY pos LIMIT $3) AS w
        JOIN events AS e ON e.seq = w.event_seq
        ORDER BY l.place, w.pos LIMIT $3";
    let query = sqlx::query(sql).bind(settings.id).bind(lanes).bind(limit(max));
    let rows = query.bind(settings.now.micros()).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| due!(row)).collect())
}

/// Ends the claims of these heads, whose leases ran out: each becomes ready again, or dead after
/// its last attempt, and the rest of such a claim goes back without having counted.
async fn give_up(connection: &mut PgConnection, settings: &Settings, expired: &[Due]) -> Done<()> {
    let failed = attempts::expired(expired, settings.max_attempts);
    super::attempts::fail(connection, settings, &failed, LEASE_RAN_OUT).await
}

/// Finishes what these receipts hold as [`crate::store::Store::ack`] says.
pub(super) async fn ack(
    connection: &mut PgConnection,
    consumer: &str,
    receipts: &[Receipt],
) -> Done<Vec<bool>> {
    let settings = settings(connection, consumer).await?;
    let events: Vec<Sequence> = receipts.iter().map(|receipt| receipt.sequence).collect();
    let tokens: Vec<&[u8]> = receipts.iter().map(|receipt| &receipt.token[..]).collect();
    lock_lanes(connection, settings.id, &events).await?;
    // The events once more, because the planner would else join with all work of the consumer as
    // long as it takes the table for a small one.
    let sql = "UPDATE work SET state = 2, due_at = NULL, finished_at = $4
               FROM unnest($2::bigint[], $3::bytea[]) AS r (seq, token)
               WHERE work.consumer_id = $1 AND work.event_seq = ANY ($2)
                 AND work.event_seq = r.seq AND work.receipt = r.token AND work.state = 1
               RETURNING work.event_seq, work.receipt, work.lane";
    let query = sqlx::query(sql).bind(settings.id).bind(&events).bind(&tokens);
    let rows = query.bind(settings.now.micros()).fetch_all(&mut *connection).await?;
    let lanes: Vec<i64> = rows.iter().filter_map(|row| row.get(2)).collect();
    let mut done: HashSet<(Sequence, Vec<u8>)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    if done.len() < receipts.len() {
        let sql = "SELECT work.event_seq, work.receipt
            FROM unnest($2::bigint[], $3::bytea[]) AS r (seq, token)
            JOIN work ON work.consumer_id = $1 AND work.event_seq = ANY ($2)
                     AND work.event_seq = r.seq AND work.receipt = r.token AND work.state = 2";
        let query = sqlx::query(sql).bind(settings.id).bind(&events).bind(&tokens);
        let rows = query.fetch_all(&mut *connection).await?;
        done.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
    }
    refresh_lanes(connection, settings.id, lanes.into_iter()).await?;
    let is_done = |receipt: &Receipt| done.contains(&(receipt.sequence, receipt.token.to_vec()));
    Ok(receipts.iter().map(is_done).collect())
}

/// Takes the lanes of these events, in the one order that everybody takes them in.
pub(super) async fn lock_lanes(
    connection: &mut PgConnection,
    consumer: i64,
    events: &[Sequence],
) -> Done<()> {
    // One by one, because the planner would else read all lanes for the sake of their order.
    let sql = "SELECT 1 FROM (
            SELECT DISTINCT lane FROM work
            WHERE consumer_id = $1 AND event_seq = ANY ($2) AND lane IS NOT NULL
            ORDER BY lane) AS w
        CROSS JOIN LATERAL (
            SELECT 1 FROM lanes WHERE consumer_id = $1 AND lane = w.lane FOR UPDATE) AS l";
    sqlx::query(sql).bind(consumer).bind(events).execute(connection).await?;
    Ok(())
}

/// Brings these lanes, which are locked, up to date with the first unfinished work of each.
pub(super) async fn refresh_lanes(
    connection: &mut PgConnection,
    consumer: i64,
    lanes: impl Iterator<Item = i64>,
) -> Done<()> {
    let mut lanes: Vec<i64> = lanes.collect();
    lanes.sort_unstable();
    lanes.dedup();
    if lanes.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE lanes SET (head, due_at, since) = (
                   SELECT pos, due_at, since FROM work
                   WHERE work.consumer_id = lanes.consumer_id AND work.lane = lanes.lane
                     AND work.state < 2 ORDER BY pos LIMIT 1)
               WHERE consumer_id = $1 AND lane = ANY ($2)";
    sqlx::query(sql).bind(consumer).bind(lanes).execute(connection).await?;
    Ok(())
}

/// See [`crate::store::Store::next_due`]; in microseconds, negative or zero if due.
pub(super) async fn next_due(connection: &mut PgConnection, consumer: &str) -> Done<Option<i64>> {
    let sql = concat!(
        "SELECT CASE WHEN c.paused = 0 AND c.fill_next IS NULL THEN least(
            (SELECT due_at FROM lanes WHERE consumer_id = c.id AND due_at IS NOT NULL
             ORDER BY due_at LIMIT 1),
            (SELECT due_at FROM work WHERE consumer_id = c.id AND lane IS NULL AND state < 2
             ORDER BY due_at LIMIT 1)) END - ",
        super::now!(),
        " FROM consumers AS c WHERE c.name = $1"
    );
    let due = sqlx::query_scalar(sql).bind(consumer).fetch_optional(connection).await?;
    due.ok_or_else(|| StoreError::UnknownConsumer(consumer.to_owned()).into())
}

pub(super) fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}
