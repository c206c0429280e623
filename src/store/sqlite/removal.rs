//! Removing a consumer with its work, a part at a time: on SQLite.

use sqlx::{Row, SqliteConnection};

use super::error::of;
use super::work;
use crate::event::Sequence;
use crate::store::{Result, StoreError};

/// See [`crate::store::Consumers::remove_consumer`].
pub(super) async fn remove(
    connection: &mut SqliteConnection,
    name: &str,
    limit: usize,
) -> Result<bool> {
    let sql = "UPDATE consumers SET paused = 1, fill_next = NULL, fill_last = NULL,
                      fill_since = NULL WHERE name = $1 RETURNING id";
    let query = sqlx::query_scalar(sql).bind(name);
    let consumer: Option<i64> = query.fetch_optional(&mut *connection).await.map_err(of)?;
    let consumer = consumer.ok_or_else(|| StoreError::UnknownConsumer(name.to_owned()))?;
    let sql = "SELECT event_seq, lane FROM work WHERE consumer_id = $1 ORDER BY event_seq LIMIT $2";
    let query = sqlx::query(sql).bind(consumer).bind(work::limit(limit));
    let rows = query.fetch_all(&mut *connection).await.map_err(of)?;
    if rows.len() >= limit {
        let events: Vec<Sequence> = rows.iter().map(|row| row.get(0)).collect();
        let lanes: Vec<i64> = rows.iter().filter_map(|row| row.get(1)).collect();
        part(connection, consumer, &events, &lanes).await?;
        return Ok(false);
    }
    // Of lanes and effects there may be more than there is work.
    for sql in [
        "DELETE FROM lanes WHERE consumer_id = $1 AND lane IN (
             SELECT lane FROM lanes WHERE consumer_id = $1 AND head IS NULL LIMIT $2)",
        "DELETE FROM effects WHERE consumer_id = $1 AND key_hash IN (
             SELECT key_hash FROM effects WHERE consumer_id = $1 LIMIT $2)",
    ] {
        let query = sqlx::query(sql).bind(consumer).bind(work::limit(limit));
        let removed = query.execute(&mut *connection).await.map_err(of)?.rows_affected();
        if removed >= limit as u64 {
            return Ok(false);
        }
    }
    for sql in [
        "DELETE FROM attempts WHERE consumer_id = $1",
        "DELETE FROM work WHERE consumer_id = $1",
        "DELETE FROM lanes WHERE consumer_id = $1",
        "DELETE FROM consumers WHERE id = $1",
    ] {
        sqlx::query(sql).bind(consumer).execute(&mut *connection).await.map_err(of)?;
    }
    Ok(true)
}

/// Removes the work of these events, which lies in these lanes.
async fn part(
    connection: &mut SqliteConnection,
    consumer: i64,
    events: &[Sequence],
    lanes: &[i64],
) -> Result<()> {
    let list = super::json(events.iter().copied());
    for sql in [
        "DELETE FROM attempts WHERE consumer_id = $1
           AND event_seq IN (SELECT value FROM json_each($2))",
        "DELETE FROM effects WHERE consumer_id = $1
           AND event_seq IN (SELECT value FROM json_each($2))",
        "DELETE FROM work WHERE consumer_id = $1
           AND event_seq IN (SELECT value FROM json_each($2))",
    ] {
        sqlx::query(sql).bind(consumer).bind(&list).execute(&mut *connection).await.map_err(of)?;
    }
    let sql = "UPDATE consumers SET work_count = work_count - $2 WHERE id = $1";
    let query = sqlx::query(sql).bind(consumer).bind(work::limit(events.len()));
    query.execute(&mut *connection).await.map_err(of)?;
    work::refresh_lanes(connection, consumer, lanes.iter().copied()).await?;
    let sql = "DELETE FROM lanes WHERE consumer_id = $1 AND head IS NULL
                 AND lane IN (SELECT value FROM json_each($2))";
    let query = sqlx::query(sql).bind(consumer).bind(super::json(lanes.iter().copied()));
    query.execute(connection).await.map(drop).map_err(of)
}
