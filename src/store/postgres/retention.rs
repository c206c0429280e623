//! Removing what is finished and old: on PostgreSQL.
//!
//! A removal takes its turn with the appends: one of those may be counting a duplicate on the very
//! event, or keep a variant of it. So nothing is made due again meanwhile either, since that takes
//! numbers. Of lanes it passes over those that somebody holds.

use std::collections::HashSet;

use async_trait::async_trait;
use sqlx::{PgConnection, Row};

use super::PostgresStore;
use super::append::LOCK;
use super::session::Failure;
use crate::clock::Time;
use crate::event::Sequence;
use crate::store::retention::{
    BEGUN, CONSUMERS, Chosen, Filling, LOOK, Looked, UNFINISHED, choose, looked, span,
};
use crate::store::{Removal, Removed, Result, Retention, bound};

type Done<T> = std::result::Result<T, Failure>;

#[async_trait]
impl Retention for PostgresStore {
    async fn remove_finished(&self, removal: Removal) -> Result<Removed> {
        self.sessions.transaction(move |connection| Box::pin(remove(connection, removal))).await
    }

    async fn forget_identities(&self, limit: usize) -> Result<u64> {
        self.sessions.transaction(move |connection| Box::pin(forget(connection, limit))).await
    }
}

async fn remove(connection: &mut PgConnection, removal: Removal) -> Done<Removed> {
    sqlx::raw_sql(LOCK).execute(&mut *connection).await?;
    let now = sqlx::query_scalar(concat!("SELECT ", super::now!()));
    let bounds = removal.bounds(Time::from_micros(now.fetch_one(&mut *connection).await?));
    let query = sqlx::query(LOOK).bind(removal.after).bind(bound(removal.limit as u64));
    let rows = query.fetch_all(&mut *connection).await?;
    let looked: Vec<Looked> = rows.iter().map(|row| looked!(row)).collect();
    let Some((first, last)) = span(&looked, &bounds) else { return Ok(Removed::default()) };
    // The consumers first: what one is filled with after that is its work when that is read.
    let consumers: Vec<Filling> = sqlx::query_as(CONSUMERS).fetch_all(&mut *connection).await?;
    let mut held: HashSet<Sequence> = HashSet::new();
    for (consumer, ..) in &consumers {
        let query = sqlx::query_scalar(UNFINISHED).bind(consumer).bind(first).bind(last);
        let query = query.bind(bounds.finished.micros());
        let unfinished: Vec<Sequence> = query.fetch_all(&mut *connection).await?;
        held.extend(unfinished);
    }
    let query = sqlx::query_scalar(BEGUN).bind(first).bind(last);
    let begun: Vec<Sequence> = query.fetch_all(&mut *connection).await?;
    held.extend(begun);
    let chosen = choose(&looked, &consumers, &held, &removal, &bounds);
    if !chosen.events.is_empty() {
        delete(connection, &chosen, &consumers, bounds.expires).await?;
    }
    Ok(chosen.removed())
}

async fn delete(
    connection: &mut PgConnection,
    chosen: &Chosen,
    consumers: &[Filling],
    expires: Time,
) -> Done<()> {
    let sql = "WITH kept AS (
            UPDATE identities AS i SET body_hash = e.body_hash, expires_at = $2
            FROM events AS e WHERE i.event_seq = ANY ($1) AND e.seq = i.event_seq
        ), acted AS (
            DELETE FROM effects WHERE event_seq = ANY ($1)
        ), varied AS (
            DELETE FROM variants WHERE event_seq = ANY ($1)
        ), read AS (
            DELETE FROM bodies WHERE event_seq = ANY ($1)
        )
        DELETE FROM events WHERE seq = ANY ($1)";
    let query = sqlx::query(sql).bind(&chosen.events).bind(expires.micros());
    query.execute(&mut *connection).await?;
    let (first, last) = (chosen.events.first(), chosen.events.last());
    for (consumer, ..) in consumers {
        // The range bounds what is read even by a plan that was made for small tables.
        let sql = "WITH tried AS (
                DELETE FROM attempts
                WHERE consumer_id = $1 AND event_seq BETWEEN $2 AND $3 AND event_seq = ANY ($4)
            )
            DELETE FROM work
            WHERE consumer_id = $1 AND event_seq BETWEEN $2 AND $3 AND event_seq = ANY ($4)";
        let query = sqlx::query(sql).bind(consumer).bind(first).bind(last);
        let done = query.bind(&chosen.events).execute(&mut *connection).await?.rows_affected();
        let sql = "UPDATE consumers SET work_count = work_count - $2 WHERE id = $1";
        let query = sqlx::query(sql).bind(consumer).bind(bound(done));
        query.execute(&mut *connection).await?;
        // As long as an event of the conversation is left, its work may become due again.
        let sql = "SELECT l.lane FROM lanes AS l
            WHERE l.consumer_id = $1 AND l.lane = ANY ($2) AND l.head IS NULL
              AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.conversation = l.lane)
            FOR UPDATE OF l SKIP LOCKED";
        let query = sqlx::query_scalar(sql).bind(consumer).bind(&chosen.lanes);
        let lanes: Vec<i64> = query.fetch_all(&mut *connection).await?;
        let sql = "DELETE FROM lanes WHERE consumer_id = $1 AND lane = ANY ($2)";
        sqlx::query(sql).bind(consumer).bind(lanes).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn forget(connection: &mut PgConnection, limit: usize) -> Done<u64> {
    sqlx::raw_sql(LOCK).execute(&mut *connection).await?;
    let sql = concat!(
        "DELETE FROM identities AS i USING (
             SELECT source_id, key FROM identities WHERE expires_at <= ",
        super::now!(),
        " ORDER BY expires_at LIMIT $1) AS f
         WHERE i.source_id = f.source_id AND i.key = f.key RETURNING i.event_seq"
    );
    let query = sqlx::query_scalar(sql).bind(bound(limit as u64));
    let events: Vec<Sequence> = query.fetch_all(&mut *connection).await?;
    let sql = "DELETE FROM variants AS v WHERE v.event_seq = ANY ($1)
                 AND NOT EXISTS (SELECT 1 FROM identities AS i WHERE i.event_seq = v.event_seq)";
    sqlx::query(sql).bind(&events).execute(connection).await?;
    Ok(events.len() as u64)
}
