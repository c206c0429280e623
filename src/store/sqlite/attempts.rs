//! How attempts end other than well: nack, extend, and what became dead: on SQLite.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::error::of;
use super::work::{limit, pairs, refresh_lanes, settings};
use crate::clock::{Time, from_micros};
use crate::store::attempts::{self, Failed, Held, held};
use crate::store::query;
use crate::store::{Attempts, Result};
use crate::work::{ATTEMPTS_KEPT, DeadPage, DeadQuery, Nack, Nacked, Receipt};

#[async_trait]
impl Attempts for SqliteStore {
    async fn extend(
        &self,
        consumer: &str,
        receipts: Vec<Receipt>,
        lease: Option<Duration>,
    ) -> Result<Vec<bool>> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { extend(connection, now, &consumer, &receipts, lease).await })
            })
            .await
    }

    async fn nack(&self, consumer: &str, receipts: Vec<Receipt>, how: Nack) -> Result<Vec<Nacked>> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { nack(connection, now, &consumer, &receipts, &how).await })
            })
            .await
    }

    async fn dead(&self, consumer: &str, query: DeadQuery) -> Result<DeadPage> {
        dead(&mut *self.reader().await?, consumer, query).await
    }
}

async fn extend(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    receipts: &[Receipt],
    lease: Option<Duration>,
) -> Result<Vec<bool>> {
    let settings = settings(connection, consumer).await?;
    let until = now + lease.unwrap_or(from_micros(settings.lease));
    let sql = "UPDATE work SET due_at = $3, since = $4
               WHERE consumer_id = $1 AND state = 1 AND (event_seq, receipt) IN (
                   SELECT value ->> 0, unhex(value ->> 1) FROM json_each($2))
               RETURNING event_seq, receipt, lane, pos, attempt";
    let query = sqlx::query(sql).bind(settings.id).bind(pairs(receipts)).bind(until.micros());
    let rows = query.bind(now.micros()).fetch_all(&mut *connection).await.map_err(of)?;
    let held: Vec<Held> = rows.iter().map(|row| held!(row)).collect();
    refresh_lanes(connection, settings.id, held.iter().filter_map(|held| held.lane)).await?;
    let held: HashSet<Receipt> = held.iter().map(|held| held.receipt).collect();
    Ok(receipts.iter().map(|receipt| held.contains(receipt)).collect())
}

async fn nack(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    receipts: &[Receipt],
    nack: &Nack,
) -> Result<Vec<Nacked>> {
    let settings = settings(connection, consumer).await?;
    let sql = "SELECT work.event_seq, work.receipt, work.lane, work.pos, work.attempt
        FROM (SELECT value ->> 0 AS seq, unhex(value ->> 1) AS token FROM json_each($2)) AS r
        CROSS JOIN work ON work.consumer_id = $1 AND work.event_seq = r.seq
                       AND work.receipt = r.token AND work.state = 1";
    let query = sqlx::query(sql).bind(settings.id).bind(pairs(&attempts::distinct(receipts)));
    let rows = query.fetch_all(&mut *connection).await.map_err(of)?;
    let held: Vec<Held> = rows.iter().map(|row| held!(row)).collect();
    let failed = attempts::nacked(&held, nack, settings.max_attempts, settings.backoff, now);
    let error = attempts::kept(nack.error.as_deref());
    fail(connection, now, settings.id, &failed, &error).await?;
    Ok(attempts::answer(receipts, &held, &failed))
}

/// Ends these attempts: each is recorded, its work is due again or dead, and what is leased behind
/// it in its lane goes back without having counted. All leased work of a lane is of one claim.
pub(super) async fn fail(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: i64,
    failed: &[Failed],
    error: &str,
) -> Result<()> {
    if failed.is_empty() {
        return Ok(());
    }
    let events = super::json(failed.iter().map(|failed| failed.event));
    let sql = "INSERT INTO attempts (consumer_id, event_seq, attempt, at, error)
               SELECT consumer_id, event_seq, attempt, $3, $4 FROM work
               WHERE consumer_id = $1 AND event_seq IN (SELECT value FROM json_each($2))
               ON CONFLICT DO UPDATE SET at = excluded.at, error = excluded.error";
    let query = sqlx::query(sql).bind(consumer).bind(&events).bind(now.micros()).bind(error);
    query.execute(&mut *connection).await.map_err(of)?;
    let sql = "DELETE FROM attempts WHERE (consumer_id, event_seq, attempt) IN (
                   SELECT consumer_id, event_seq, attempt - $3 FROM work
                   WHERE consumer_id = $1 AND event_seq IN (SELECT value FROM json_each($2)))";
    let query = sqlx::query(sql).bind(consumer).bind(&events).bind(ATTEMPTS_KEPT);
    query.execute(&mut *connection).await.map_err(of)?;
    // The consumer stands in the list, because the planner would else read all of its work first.
    let sql = "UPDATE work SET state = iif(f.value ->> 2 IS NULL, 3, 0), receipt = NULL,
                      due_at = f.value ->> 2, since = $2,
                      finished_at = iif(f.value ->> 2 IS NULL, $2, NULL)
               FROM json_each($1) AS f
               WHERE work.consumer_id = f.value ->> 0 AND work.event_seq = f.value ->> 1";
    let ends = super::json(failed.iter().map(|one| json!([consumer, one.event, one.due_at])));
    sqlx::query(sql).bind(ends).bind(now.micros()).execute(&mut *connection).await.map_err(of)?;
    let firsts = attempts::firsts(failed);
    let sql = "UPDATE work SET state = 0, attempt = attempt - 1, receipt = NULL, due_at = $3,
                      since = $3
               WHERE consumer_id = $1 AND event_seq IN (
                   SELECT w.event_seq FROM json_each($2) AS l
                   CROSS JOIN work AS w INDEXED BY work_lane
                       ON w.consumer_id = $1 AND w.lane = l.value ->> 0 AND w.pos > l.value ->> 1
                          AND w.state = 1 AND w.state < 2 AND w.lane IS NOT NULL)";
    let lanes = super::json(firsts.iter().map(|(lane, first)| json!([lane, first])));
    let query = sqlx::query(sql).bind(consumer).bind(lanes).bind(now.micros());
    query.execute(&mut *connection).await.map_err(of)?;
    refresh_lanes(connection, consumer, firsts.into_keys()).await
}

async fn dead(
    connection: &mut SqliteConnection,
    consumer: &str,
    query: DeadQuery,
) -> Result<DeadPage> {
    let consumer = settings(connection, consumer).await?.id;
    let sql = "SELECT e.seq, e.size, w.pos, w.finished_at
        FROM work AS w INDEXED BY work_dead CROSS JOIN events AS e ON e.seq = w.event_seq
        WHERE w.consumer_id = $1 AND w.state = 3 AND w.pos > $2 ORDER BY w.pos LIMIT $3";
    let found = sqlx::query(sql).bind(consumer).bind(query.after.unwrap_or(i64::MIN));
    let found = found.bind(limit(query.limit)).fetch_all(&mut *connection).await.map_err(of)?;
    let sizes = found.iter().map(|row| (row.get(0), row.get(1)));
    let (page, more) = query::fitting(sizes, query.limit, query.max_bytes);
    let events = super::read::numbered(connection, &page).await?;
    let sql = "SELECT a.event_seq, a.attempt, a.at, a.error
        FROM json_each($2) AS j CROSS JOIN attempts AS a
            ON a.consumer_id = $1 AND a.event_seq = j.value
        ORDER BY a.event_seq, a.attempt";
    let tried = sqlx::query(sql).bind(consumer).bind(super::json(page.iter().copied()));
    let tried = tried.fetch_all(connection).await.map_err(of)?;
    let found = found.iter().map(|row| (row.get(0), row.get(2), Time::from_micros(row.get(3))));
    let tried = tried.iter().map(|row| (row.get(0), query::attempt!(row)));
    Ok(attempts::dead_page(found, events, tried, more))
}
