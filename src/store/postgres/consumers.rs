//! Consumers as operators see them and change them: on PostgreSQL.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::session::Failure;
use super::{PostgresStore, fill, removal, transaction};
use crate::clock::{Time, from_micros, micros};
use crate::consumer::{ConsumerState, Start};
use crate::store::{Consumers, Result, StoreError};
use crate::work::{Consumer, Filter, Ordering};

type Done<T> = std::result::Result<T, Failure>;

#[async_trait]
impl Consumers for PostgresStore {
    async fn put_consumers(&self, consumers: Vec<Consumer>) -> Result<()> {
        transaction!(self, (consumers), |connection| put(connection, &consumers))
    }

    async fn consumers(&self) -> Result<Vec<Consumer>> {
        transaction!(self, (), |connection| list(connection))
    }

    async fn consumer_states(&self, name: Option<&str>) -> Result<Vec<ConsumerState>> {
        let name = name.map(str::to_owned);
        transaction!(self, (name), |connection| states(connection, name.as_deref()))
    }

    async fn add_consumer(&self, consumer: Consumer, start: Start) -> Result<bool> {
        transaction!(self, (consumer), |connection| fill::add(connection, &consumer, start))
    }

    async fn fill_consumers(&self, limit: usize) -> Result<bool> {
        transaction!(self, (), |connection| fill::fill(connection, limit))
    }

    async fn pause_consumer(&self, name: &str, paused: bool) -> Result<()> {
        let name = name.to_owned();
        transaction!(self, (name), |connection| pause(connection, &name, paused))
    }

    async fn remove_consumer(&self, name: &str, limit: usize) -> Result<bool> {
        let name = name.to_owned();
        transaction!(self, (name), |connection| removal::remove(connection, &name, limit))
    }

    async fn note_claim(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        transaction!(self, (name), |connection| note_claim(connection, &name))
    }

    async fn unclaimed(&self, idle: Duration) -> Result<Vec<String>> {
        transaction!(self, (), |connection| unclaimed(connection, idle))
    }
}

async fn put(connection: &mut PgConnection, consumers: &[Consumer]) -> Done<()> {
    // No event is appended while the set of consumers changes, so each knows where it begins.
    sqlx::raw_sql(super::append::LOCK).execute(&mut *connection).await?;
    for consumer in consumers {
        let sql = concat!(
            "INSERT INTO consumers (name, ordering, lease, max_attempts, backoff_first,
                    backoff_max, channels, source_names, types, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ",
            super::now!(),
            ") ON CONFLICT (name) DO UPDATE SET ordering = excluded.ordering,
                lease = excluded.lease, max_attempts = excluded.max_attempts,
                backoff_first = excluded.backoff_first, backoff_max = excluded.backoff_max,
                channels = excluded.channels, source_names = excluded.source_names,
                types = excluded.types"
        );
        let filter = &consumer.filter;
        let query = sqlx::query(sql).bind(&consumer.name).bind(consumer.ordering.name());
        let query = query.bind(micros(consumer.lease)).bind(consumer.max_attempts);
        let query = query.bind(micros(consumer.backoff_first)).bind(micros(consumer.backoff_max));
        let query = query.bind(&filter.channels).bind(&filter.sources).bind(&filter.types);
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Creates a consumer with nothing to fill, while no event is appended; tells false if there is one
/// of its name.
pub(super) async fn create(connection: &mut PgConnection, consumer: &Consumer) -> Done<bool> {
    sqlx::raw_sql(super::append::LOCK).execute(&mut *connection).await?;
    let sql = "SELECT count(*) FROM consumers WHERE name = $1";
    let query = sqlx::query_scalar::<_, i64>(sql).bind(&consumer.name);
    if query.fetch_one(&mut *connection).await? > 0 {
        return Ok(false);
    }
    put(connection, std::slice::from_ref(consumer)).await?;
    Ok(true)
}

async fn list(connection: &mut PgConnection) -> Done<Vec<Consumer>> {
    let sql = "SELECT name, ordering, lease, max_attempts, backoff_first, backoff_max, channels,
                      source_names, types FROM consumers ORDER BY name";
    let rows = sqlx::query(sql).fetch_all(connection).await?;
    Ok(rows.iter().map(consumer).collect())
}

/// Reads the first nine columns.
fn consumer(row: &PgRow) -> Consumer {
    Consumer {
        name: row.get(0),
        ordering: Ordering::from_name(row.get(1)),
        lease: from_micros(row.get(2)),
        max_attempts: row.get(3),
        backoff_first: from_micros(row.get(4)),
        backoff_max: from_micros(row.get(5)),
        filter: Filter { channels: row.get(6), sources: row.get(7), types: row.get(8) },
    }
}

async fn states(connection: &mut PgConnection, name: Option<&str>) -> Done<Vec<ConsumerState>> {
    // One statement, because what is done is reckoned from the rest.
    let sql = concat!(
        "SELECT c.name, c.ordering, c.lease, c.max_attempts, c.backoff_first, c.backoff_max,
                c.channels, c.source_names, c.types, c.paused, c.fill_next IS NOT NULL,
                c.created_at, c.last_claim_at, c.work_count, u.ready, u.delayed, u.leased, u.oldest,
                (SELECT count(*) FROM work WHERE consumer_id = c.id AND state = 3), t.now
         FROM (SELECT ",
        super::now!(),
        " AS now) AS t CROSS JOIN consumers AS c CROSS JOIN LATERAL (
             SELECT count(*) FILTER (WHERE due_at <= t.now) AS ready,
                    count(*) FILTER (WHERE due_at > t.now AND state = 0) AS delayed,
                    count(*) FILTER (WHERE due_at > t.now AND state = 1) AS leased,
                    min(due_at) AS oldest
             FROM (SELECT due_at, state FROM work
                   WHERE consumer_id = c.id AND state < 2 AND lane IS NOT NULL
                   UNION ALL
                   SELECT due_at, state FROM work
                   WHERE consumer_id = c.id AND state < 2 AND lane IS NULL) AS w) AS u
         WHERE $1::text IS NULL OR c.name = $1 ORDER BY c.name"
    );
    let rows = sqlx::query(sql).bind(name).fetch_all(connection).await?;
    let state = |row: &PgRow| {
        let now = Time::from_micros(row.get(19));
        crate::store::query::state!(row, consumer(row), now)
    };
    Ok(rows.iter().map(state).collect())
}

async fn pause(connection: &mut PgConnection, name: &str, paused: bool) -> Done<()> {
    let sql = "UPDATE consumers SET paused = $2 WHERE name = $1";
    let query = sqlx::query(sql).bind(name).bind(i64::from(paused));
    if query.execute(connection).await?.rows_affected() == 0 {
        return Err(StoreError::UnknownConsumer(name.to_owned()).into());
    }
    Ok(())
}

async fn note_claim(connection: &mut PgConnection, name: &str) -> Done<()> {
    let sql = concat!("UPDATE consumers SET last_claim_at = ", super::now!(), " WHERE name = $1");
    sqlx::query(sql).bind(name).execute(connection).await?;
    Ok(())
}

async fn unclaimed(connection: &mut PgConnection, idle: Duration) -> Done<Vec<String>> {
    let sql = concat!(
        "SELECT name FROM consumers AS c
         WHERE paused = 0 AND fill_next IS NULL AND coalesce(last_claim_at, created_at) <= ",
        super::now!(),
        " - $1
           AND (EXISTS (SELECT 1 FROM lanes WHERE consumer_id = c.id AND due_at IS NOT NULL)
                OR EXISTS (SELECT 1 FROM work
                           WHERE consumer_id = c.id AND lane IS NULL AND state < 2))
         ORDER BY name"
    );
    Ok(sqlx::query_scalar(sql).bind(micros(idle)).fetch_all(connection).await?)
}
