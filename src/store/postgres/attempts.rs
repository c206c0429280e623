//! How attempts end other than well: nack, extend, and what became dead: on PostgreSQL.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::{PgConnection, Row};

use super::PostgresStore;
use super::session::Failure;
use super::transaction;
use super::work::{Settings, limit, lock_lanes, refresh_lanes, settings};
use crate::clock::{Time, from_micros};
use crate::event::Sequence;
use crate::store::attempts::{self, Failed, Held, held};
use crate::store::{Attempts, Result, query};
use crate::work::{ATTEMPTS_KEPT, DeadPage, DeadQuery, Nack, Nacked, Receipt};

type Done<T> = std::result::Result<T, Failure>;

#[async_trait]
impl Attempts for PostgresStore {
    async fn extend(
        &self,
        consumer: &str,
        receipts: Vec<Receipt>,
        lease: Option<Duration>,
    ) -> Result<Vec<bool>> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, receipts), |connection| extend(
            connection, &consumer, &receipts, lease
        ))
    }

    async fn nack(&self, consumer: &str, receipts: Vec<Receipt>, how: Nack) -> Result<Vec<Nacked>> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, receipts, how), |connection| nack(
            connection, &consumer, &receipts, &how
        ))
    }

    async fn dead(&self, consumer: &str, query: DeadQuery) -> Result<DeadPage> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer), |connection| dead(connection, &consumer, query))
    }
}

async fn extend(
    connection: &mut PgConnection,
    consumer: &str,
    receipts: &[Receipt],
    lease: Option<Duration>,
) -> Done<Vec<bool>> {
    let settings = settings(connection, consumer).await?;
    let until = settings.now + lease.unwrap_or(from_micros(settings.lease));
    let (events, tokens) = parts(&attempts::distinct(receipts));
    lock_lanes(connection, settings.id, &events).await?;
    let sql = "UPDATE work SET due_at = $4, since = $5
               FROM unnest($2::bigint[], $3::bytea[]) AS r (seq, token)
               WHERE work.consumer_id = $1 AND work.event_seq = ANY ($2)
                 AND work.event_seq = r.seq AND work.receipt = r.token AND work.state = 1
               RETURNING work.event_seq, work.receipt, work.lane, work.pos, work.attempt";
    let query = sqlx::query(sql).bind(settings.id).bind(events).bind(tokens);
    let query = query.bind(until.micros()).bind(settings.now.micros());
    let rows = query.fetch_all(&mut *connection).await?;
    let held: Vec<Held> = rows.iter().map(|row| held!(row)).collect();
    refresh_lanes(connection, settings.id, held.iter().filter_map(|held| held.lane)).await?;
    let held: HashSet<Receipt> = held.iter().map(|held| held.receipt).collect();
    Ok(receipts.iter().map(|receipt| held.contains(receipt)).collect())
}

async fn nack(
    connection: &mut PgConnection,
    consumer: &str,
    receipts: &[Receipt],
    nack: &Nack,
) -> Done<Vec<Nacked>> {
    let settings = settings(connection, consumer).await?;
    let (events, tokens) = parts(&attempts::distinct(receipts));
    lock_lanes(connection, settings.id, &events).await?;
    // Work of no lane is locked by itself, or a claim could take it before it is written.
    let sql = "SELECT work.event_seq, work.receipt, work.lane, work.pos, work.attempt
        FROM unnest($2::bigint[], $3::bytea[]) AS r (seq, token)
        JOIN work ON work.consumer_id = $1 AND work.event_seq = ANY ($2)
                 AND work.event_seq = r.seq AND work.receipt = r.token AND work.state = 1
        ORDER BY work.event_seq FOR UPDATE OF work";
    let query = sqlx::query(sql).bind(settings.id).bind(events).bind(tokens);
    let rows = query.fetch_all(&mut *connection).await?;
    let held: Vec<Held> = rows.iter().map(|row| held!(row)).collect();
    let (last, now) = (settings.max_attempts, settings.now);
    let failed = attempts::nacked(&held, nack, last, settings.backoff, now);
    let error = attempts::kept(nack.error.as_deref());
    fail(connection, &settings, &failed, &error).await?;
    Ok(attempts::answer(receipts, &held, &failed))
}

/// Ends these attempts, whose lanes or work are locked: each is recorded, its work is due again or
/// dead, and what is leased behind it in its lane goes back without having counted. All leased work
/// of a lane is of one claim.
pub(super) async fn fail(
    connection: &mut PgConnection,
    settings: &Settings,
    failed: &[Failed],
    error: &str,
) -> Done<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let (consumer, now) = (settings.id, settings.now.micros());
    let events: Vec<Sequence> = failed.iter().map(|failed| failed.event).collect();
    let sql = "INSERT INTO attempts (consumer_id, event_seq, attempt, at, error)
               SELECT consumer_id, event_seq, attempt, $3::bigint, $4 FROM work
               WHERE consumer_id = $1 AND event_seq = ANY ($2)
               ON CONFLICT (consumer_id, event_seq, attempt)
               DO UPDATE SET at = excluded.at, error = excluded.error";
    let query = sqlx::query(sql).bind(consumer).bind(&events).bind(now).bind(error);
    query.execute(&mut *connection).await?;
    let sql = "DELETE FROM attempts AS a USING work AS w
               WHERE w.consumer_id = $1 AND w.event_seq = ANY ($2)
                 AND a.consumer_id = w.consumer_id AND a.event_seq = w.event_seq
                 AND a.attempt = w.attempt - $3";
    let query = sqlx::query(sql).bind(consumer).bind(&events).bind(ATTEMPTS_KEPT);
    query.execute(&mut *connection).await?;
    let sql = "UPDATE work SET state = CASE WHEN f.due_at IS NULL THEN 3 ELSE 0 END,
                      receipt = NULL, due_at = f.due_at, since = $4,
                      finished_at = CASE WHEN f.due_at IS NULL THEN $4::bigint END
               FROM unnest($2::bigint[], $3::bigint[]) AS f (seq, due_at)
               WHERE work.consumer_id = $1 AND work.event_seq = ANY ($2)
                 AND work.event_seq = f.seq";
    let ends: Vec<Option<i64>> = failed.iter().map(|failed| failed.due_at).collect();
    let query = sqlx::query(sql).bind(consumer).bind(&events).bind(ends).bind(now);
    query.execute(&mut *connection).await?;
    let firsts = attempts::firsts(failed);
    let (lanes, places): (Vec<i64>, Vec<i64>) = firsts.into_iter().unzip();
    let sql = "UPDATE work SET state = 0, attempt = attempt - 1, receipt = NULL, due_at = $4,
                      since = $4
               WHERE consumer_id = $1 AND event_seq = ANY (ARRAY(
                   SELECT w.event_seq FROM unnest($2::bigint[], $3::bigint[]) AS l (lane, first)
                   CROSS JOIN LATERAL (
                       SELECT event_seq FROM work
                       WHERE consumer_id = $1 AND lane = l.lane AND pos > l.first AND state = 1
                       ORDER BY pos) AS w))";
    let query = sqlx::query(sql).bind(consumer).bind(&lanes).bind(places).bind(now);
    query.execute(&mut *connection).await?;
    refresh_lanes(connection, consumer, lanes.into_iter()).await
}

async fn dead(connection: &mut PgConnection, consumer: &str, query: DeadQuery) -> Done<DeadPage> {
    let consumer = settings(connection, consumer).await?.id;
    let sql = "SELECT e.seq, e.size, w.pos, w.finished_at
        FROM work AS w JOIN events AS e ON e.seq = w.event_seq
        WHERE w.consumer_id = $1 AND w.state = 3 AND w.pos > $2 ORDER BY w.pos LIMIT $3";
    let found = sqlx::query(sql).bind(consumer).bind(query.after.unwrap_or(i64::MIN));
    let found = found.bind(limit(query.limit)).fetch_all(&mut *connection).await?;
    let sizes = found.iter().map(|row| (row.get(0), row.get(1)));
    let (page, more) = query::fitting(sizes, query.limit, query.max_bytes);
    let events = super::read::numbered(connection, &page).await?;
    let sql = "SELECT a.event_seq, a.attempt, a.at, a.error FROM unnest($2::bigint[]) AS l (event)
        CROSS JOIN LATERAL (
            SELECT * FROM attempts WHERE consumer_id = $1 AND event_seq = l.event
            ORDER BY attempt) AS a";
    let tried = sqlx::query(sql).bind(consumer).bind(page).fetch_all(connection).await?;
    let found = found.iter().map(|row| (row.get(0), row.get(2), Time::from_micros(row.get(3))));
    let tried = tried.iter().map(|row| (row.get(0), query::attempt!(row)));
    Ok(attempts::dead_page(found, events, tried, more))
}

/// Events and tokens of these receipts, as a statement takes them.
fn parts(receipts: &[Receipt]) -> (Vec<Sequence>, Vec<Vec<u8>>) {
    receipts.iter().map(|receipt| (receipt.sequence, receipt.token.to_vec())).unzip()
}
