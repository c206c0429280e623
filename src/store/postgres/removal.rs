//! Removing a consumer with its work, a part at a time: on PostgreSQL.
//!
//! Each part holds the lock of appends, so that no work of a consumer is made while it goes.

use sqlx::PgConnection;

use super::session::Failure;
use super::{append, work};
use crate::event::Sequence;
use crate::store::StoreError;

type Done<T> = std::result::Result<T, Failure>;

/// See [`crate::store::Consumers::remove_consumer`].
pub(super) async fn remove(connection: &mut PgConnection, name: &str, limit: usize) -> Done<bool> {
    sqlx::raw_sql(append::LOCK).execute(&mut *connection).await?;
    let sql = "UPDATE consumers SET paused = 1, fill_next = NULL, fill_last = NULL,
                      fill_since = NULL WHERE name = $1 RETURNING id";
    let consumer: Option<i64> =
        sqlx::query_scalar(sql).bind(name).fetch_optional(&mut *connection).await?;
    let consumer = consumer.ok_or_else(|| StoreError::UnknownConsumer(name.to_owned()))?;
    let sql = "SELECT event_seq FROM work WHERE consumer_id = $1 ORDER BY event_seq LIMIT $2";
    let query = sqlx::query_scalar(sql).bind(consumer).bind(work::limit(limit));
    let events: Vec<Sequence> = query.fetch_all(&mut *connection).await?;
    if events.len() >= limit {
        part(connection, consumer, &events).await?;
        return Ok(false);
    }
    // Of lanes and effects there may be more than there is work.
    for sql in [
        "DELETE FROM lanes WHERE consumer_id = $1 AND lane = ANY (ARRAY(
             SELECT lane FROM lanes WHERE consumer_id = $1 AND head IS NULL
             ORDER BY lane LIMIT $2 FOR UPDATE))",
        "DELETE FROM effects WHERE consumer_id = $1 AND key_hash = ANY (ARRAY(
             SELECT key_hash FROM effects WHERE consumer_id = $1 ORDER BY key_hash LIMIT $2))",
    ] {
        let query = sqlx::query(sql).bind(consumer).bind(work::limit(limit));
        if query.execute(&mut *connection).await?.rows_affected() >= limit as u64 {
            return Ok(false);
        }
    }
    // The work first: whoever still acts on some of it, as the lock on its row shows, is waited for,
    // and what that left is then there to be removed.
    for sql in [
        "SELECT 1 FROM lanes WHERE consumer_id = $1 ORDER BY lane FOR UPDATE",
        "DELETE FROM work WHERE consumer_id = $1",
        "DELETE FROM attempts WHERE consumer_id = $1",
        "DELETE FROM effects WHERE consumer_id = $1",
        "DELETE FROM lanes WHERE consumer_id = $1",
        "DELETE FROM consumers WHERE id = $1",
    ] {
        sqlx::query(sql).bind(consumer).execute(&mut *connection).await?;
    }
    Ok(true)
}

/// Removes the work of these events.
async fn part(connection: &mut PgConnection, consumer: i64, events: &[Sequence]) -> Done<()> {
    work::lock_lanes(connection, consumer, events).await?;
    let sql = "DELETE FROM work WHERE consumer_id = $1 AND event_seq = ANY ($2) RETURNING lane";
    let query = sqlx::query_scalar(sql).bind(consumer).bind(events);
    let lanes: Vec<Option<i64>> = query.fetch_all(&mut *connection).await?;
    for sql in [
        "DELETE FROM attempts WHERE consumer_id = $1 AND event_seq = ANY ($2)",
        "DELETE FROM effects WHERE consumer_id = $1 AND event_seq = ANY ($2)",
    ] {
        sqlx::query(sql).bind(consumer).bind(events).execute(&mut *connection).await?;
    }
    let sql = "UPDATE consumers SET work_count = work_count - $2 WHERE id = $1";
    let query = sqlx::query(sql).bind(consumer).bind(work::limit(lanes.len()));
    query.execute(&mut *connection).await?;
    let lanes: Vec<i64> = lanes.into_iter().flatten().collect();
    work::refresh_lanes(connection, consumer, lanes.iter().copied()).await?;
    let sql = "DELETE FROM lanes WHERE consumer_id = $1 AND lane = ANY ($2) AND head IS NULL";
    sqlx::query(sql).bind(consumer).bind(lanes).execute(connection).await?;
    Ok(())
}
