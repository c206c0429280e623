//! Removing what is finished and old: on SQLite.

use std::collections::HashSet;

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::error::of;
use crate::clock::Time;
use crate::event::Sequence;
use crate::store::retention::{
    BEGUN, CONSUMERS, Chosen, Filling, LOOK, Looked, UNFINISHED, choose, looked, span,
};
use crate::store::{Removal, Removed, Result, Retention, bound};

#[async_trait]
impl Retention for SqliteStore {
    async fn remove_finished(&self, removal: Removal) -> Result<Removed> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { remove(connection, now, &removal).await })
            })
            .await
    }

    async fn forget_identities(&self, limit: usize) -> Result<u64> {
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { forget(connection, now, limit).await })
            })
            .await
    }
}

async fn remove(
    connection: &mut SqliteConnection,
    now: Time,
    removal: &Removal,
) -> Result<Removed> {
    let bounds = removal.bounds(now);
    let query = sqlx::query(LOOK).bind(removal.after).bind(bound(removal.limit as u64));
    let rows = query.fetch_all(&mut *connection).await.map_err(of)?;
    let looked: Vec<Looked> = rows.iter().map(|row| looked!(row)).collect();
    let Some((first, last)) = span(&looked, &bounds) else { return Ok(Removed::default()) };
    let consumers = sqlx::query_as(CONSUMERS).fetch_all(&mut *connection).await;
    let consumers: Vec<Filling> = consumers.map_err(of)?;
    let mut held: HashSet<Sequence> = HashSet::new();
    for (consumer, ..) in &consumers {
        let query = sqlx::query_scalar(UNFINISHED).bind(consumer).bind(first).bind(last);
        let query = query.bind(bounds.finished.micros());
        let unfinished: Vec<Sequence> = query.fetch_all(&mut *connection).await.map_err(of)?;
        held.extend(unfinished);
    }
    let query = sqlx::query_scalar(BEGUN).bind(first).bind(last);
    let begun: Vec<Sequence> = query.fetch_all(&mut *connection).await.map_err(of)?;
    held.extend(begun);
    let chosen = choose(&looked, &consumers, &held, removal, &bounds);
    if !chosen.events.is_empty() {
        delete(connection, &chosen, &consumers, bounds.expires).await?;
    }
    Ok(chosen.removed())
}

async fn delete(
    connection: &mut SqliteConnection,
    chosen: &Chosen,
    consumers: &[Filling],
    expires: Time,
) -> Result<()> {
    let events = super::json(chosen.events.iter().copied());
    let lanes = super::json(chosen.lanes.iter().copied());
    let sql = "UPDATE identities
               SET body_hash = (SELECT body_hash FROM events WHERE seq = event_seq), expires_at = $2
               WHERE event_seq IN (SELECT value FROM json_each($1))";
    let query = sqlx::query(sql).bind(&events).bind(expires.micros());
    query.execute(&mut *connection).await.map_err(of)?;
    for sql in [
        "DELETE FROM effects WHERE event_seq IN (SELECT value FROM json_each($1))",
        "DELETE FROM variants WHERE event_seq IN (SELECT value FROM json_each($1))",
        "DELETE FROM bodies WHERE event_seq IN (SELECT value FROM json_each($1))",
        "DELETE FROM events WHERE seq IN (SELECT value FROM json_each($1))",
    ] {
        sqlx::query(sql).bind(&events).execute(&mut *connection).await.map_err(of)?;
    }
    for (consumer, ..) in consumers {
        let sql = "DELETE FROM attempts
                   WHERE consumer_id = $1 AND event_seq IN (SELECT value FROM json_each($2))";
        let query = sqlx::query(sql).bind(consumer).bind(&events);
        query.execute(&mut *connection).await.map_err(of)?;
        let sql = "DELETE FROM work
                   WHERE consumer_id = $1 AND event_seq IN (SELECT value FROM json_each($2))";
        let query = sqlx::query(sql).bind(consumer).bind(&events);
        let done = query.execute(&mut *connection).await.map_err(of)?.rows_affected();
        let sql = "UPDATE consumers SET work_count = work_count - $2 WHERE id = $1";
        let query = sqlx::query(sql).bind(consumer).bind(bound(done));
        query.execute(&mut *connection).await.map_err(of)?;
        // As long as an event of the conversation is left, its work may become due again.
        let sql = "DELETE FROM lanes
                   WHERE consumer_id = $1 AND lane IN (SELECT value FROM json_each($2))
                     AND head IS NULL
                     AND NOT EXISTS (SELECT 1 FROM events WHERE conversation = lanes.lane)";
        let query = sqlx::query(sql).bind(consumer).bind(&lanes);
        query.execute(&mut *connection).await.map_err(of)?;
    }
    Ok(())
}

async fn forget(connection: &mut SqliteConnection, now: Time, limit: usize) -> Result<u64> {
    let sql = "DELETE FROM identities WHERE (source_id, key) IN (
                   SELECT source_id, key FROM identities INDEXED BY identities_expiring
                   WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
               RETURNING event_seq";
    let query = sqlx::query_scalar(sql).bind(now.micros()).bind(bound(limit as u64));
    let events: Vec<Sequence> = query.fetch_all(&mut *connection).await.map_err(of)?;
    let forgotten = events.len() as u64;
    let sql = "DELETE FROM variants WHERE event_seq IN (SELECT value FROM json_each($1))
                 AND NOT EXISTS (SELECT 1 FROM identities AS i
                                 WHERE i.event_seq = variants.event_seq)";
    let events = super::json(events.into_iter());
    sqlx::query(sql).bind(events).execute(connection).await.map_err(of)?;
    Ok(forgotten)
}
