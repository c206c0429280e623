//! Consumers as operators see them and change them: on SQLite.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::error::of;
use super::{SqliteStore, fill, removal};
use crate::clock::{Time, from_micros, micros};
use crate::consumer::{ConsumerState, Start};
use crate::store::{Consumers, Result, StoreError};
use crate::work::{Consumer, Filter, Ordering};

#[async_trait]
impl Consumers for SqliteStore {
    async fn put_consumers(&self, consumers: Vec<Consumer>) -> Result<()> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { put(connection, now, &consumers).await })
            })
            .await
    }

    async fn consumers(&self) -> Result<Vec<Consumer>> {
        let sql =
            "SELECT name, ordering, lease, max_attempts, backoff_first, backoff_max, channels,
                          source_names, types FROM consumers ORDER BY name";
        let rows = sqlx::query(sql).fetch_all(&mut *self.reader().await?).await.map_err(of)?;
        Ok(rows.iter().map(consumer).collect())
    }

    async fn consumer_states(&self, name: Option<&str>) -> Result<Vec<ConsumerState>> {
        states(&mut *self.reader().await?, self.clock.now(), name).await
    }

    async fn add_consumer(&self, consumer: Consumer, start: Start) -> Result<bool> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { fill::add(connection, now, &consumer, start).await })
            })
            .await
    }

    async fn fill_consumers(&self, limit: usize) -> Result<bool> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { fill::fill(connection, now, limit).await })
            })
            .await
    }

    async fn pause_consumer(&self, name: &str, paused: bool) -> Result<()> {
        let name = name.to_owned();
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { pause(connection, &name, paused).await })
            })
            .await
    }

    async fn remove_consumer(&self, name: &str, limit: usize) -> Result<bool> {
        let name = name.to_owned();
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { removal::remove(connection, &name, limit).await })
            })
            .await
    }

    async fn note_claim(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(async move {
                    let sql = "UPDATE consumers SET last_claim_at = $2 WHERE name = $1";
                    let query = sqlx::query(sql).bind(name).bind(now.micros());
                    query.execute(connection).await.map(drop).map_err(of)
                })
            })
            .await
    }

    async fn unclaimed(&self, idle: Duration) -> Result<Vec<String>> {
        let sql = "SELECT name FROM consumers AS c
            WHERE paused = 0 AND fill_next IS NULL AND coalesce(last_claim_at, created_at) <= $1
              AND (EXISTS (SELECT 1 FROM lanes WHERE consumer_id = c.id AND due_at IS NOT NULL)
                   OR EXISTS (SELECT 1 FROM work INDEXED BY work_due
                              WHERE consumer_id = c.id AND lane IS NULL AND state < 2))
            ORDER BY name";
        let before = self.clock.now() - idle;
        let query = sqlx::query_scalar(sql).bind(before.micros());
        query.fetch_all(&mut *self.reader().await?).await.map_err(of)
    }
}

async fn put(connection: &mut SqliteConnection, now: Time, consumers: &[Consumer]) -> Result<()> {
    for consumer in consumers {
        let sql = "INSERT INTO consumers (name, ordering, lease, max_attempts, backoff_first,
                          backoff_max, channels, source_names, types, created_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                   ON CONFLICT (name) DO UPDATE SET ordering = excluded.ordering,
                          lease = excluded.lease, max_attempts = excluded.max_attempts,
                          backoff_first = excluded.backoff_first,
                          backoff_max = excluded.backoff_max, channels = excluded.channels,
                          source_names = excluded.source_names, types = excluded.types";
        let list = |values: &[String]| super::json(values.iter().map(String::as_str));
        let query = sqlx::query(sql).bind(&consumer.name).bind(consumer.ordering.name());
        let query = query.bind(micros(consumer.lease)).bind(consumer.max_attempts);
        let query = query.bind(micros(consumer.backoff_first)).bind(micros(consumer.backoff_max));
        let query = query.bind(list(&consumer.filter.channels));
        let query = query.bind(list(&consumer.filter.sources)).bind(list(&consumer.filter.types));
        query.bind(now.micros()).execute(&mut *connection).await.map_err(of)?;
    }
    Ok(())
}

/// Creates a consumer with nothing to fill; tells false if there is one of its name.
pub(super) async fn create(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &Consumer,
) -> Result<bool> {
    let sql = "SELECT count(*) FROM consumers WHERE name = $1";
    let query = sqlx::query_scalar::<_, i64>(sql).bind(&consumer.name);
    if query.fetch_one(&mut *connection).await.map_err(of)? > 0 {
        return Ok(false);
    }
    put(connection, now, std::slice::from_ref(consumer)).await?;
    Ok(true)
}

/// Reads the first nine columns.
fn consumer(row: &SqliteRow) -> Consumer {
    let list = |column: usize| -> Vec<String> {
        serde_json::from_str(row.get(column)).unwrap_or_default()
    };
    Consumer {
        name: row.get(0),
        ordering: Ordering::from_name(row.get(1)),
        lease: from_micros(row.get(2)),
        max_attempts: row.get(3),
        backoff_first: from_micros(row.get(4)),
        backoff_max: from_micros(row.get(5)),
        filter: Filter { channels: list(6), sources: list(7), types: list(8) },
    }
}

async fn states(
    connection: &mut SqliteConnection,
    now: Time,
    name: Option<&str>,
) -> Result<Vec<ConsumerState>> {
    let sql = "SELECT id FROM consumers WHERE $1 IS NULL OR name = $1 ORDER BY name";
    let query = sqlx::query_scalar(sql).bind(name);
    let ids: Vec<i64> = query.fetch_all(&mut *connection).await.map_err(of)?;
    let mut states = Vec::new();
    for id in ids {
        // One statement, because what is done is reckoned from the rest.
        let sql = "SELECT c.name, c.ordering, c.lease, c.max_attempts, c.backoff_first,
                          c.backoff_max, c.channels, c.source_names, c.types, c.paused,
                          c.fill_next IS NOT NULL, c.created_at, c.last_claim_at, c.work_count,
                          u.ready, u.delayed, u.leased, u.oldest,
                          (SELECT count(*) FROM work INDEXED BY work_dead
                           WHERE consumer_id = $1 AND state = 3)
            FROM consumers AS c CROSS JOIN (
                SELECT count(*) FILTER (WHERE due_at <= $2) AS ready,
                       count(*) FILTER (WHERE due_at > $2 AND state = 0) AS delayed,
                       count(*) FILTER (WHERE due_at > $2 AND state = 1) AS leased,
                       min(due_at) AS oldest
                FROM (SELECT due_at, state FROM work INDEXED BY work_lane
                      WHERE consumer_id = $1 AND state < 2 AND lane IS NOT NULL
                      UNION ALL
                      SELECT due_at, state FROM work INDEXED BY work_due
                      WHERE consumer_id = $1 AND state < 2 AND lane IS NULL)) AS u
            WHERE c.id = $1";
        let query = sqlx::query(sql).bind(id).bind(now.micros());
        let row = query.fetch_optional(&mut *connection).await.map_err(of)?;
        states.extend(row.iter().map(|row| crate::store::query::state!(row, consumer(row), now)));
    }
    Ok(states)
}

async fn pause(connection: &mut SqliteConnection, name: &str, paused: bool) -> Result<()> {
    let sql = "UPDATE consumers SET paused = $2 WHERE name = $1";
    let query = sqlx::query(sql).bind(name).bind(i64::from(paused));
    let changed = query.execute(connection).await.map_err(of)?.rows_affected();
    if changed == 0 {
        return Err(StoreError::UnknownConsumer(name.to_owned()));
    }
    Ok(())
}
