//! Removing what is finished and old: on PostgreSQL.
//!
//! A removal takes its turn with the appends: one of those may be counting a duplicate on the very
//! event, or keep a variant of it. So nothing is made due again meanwhile either, since that takes
//! numbers. Of lanes it passes over those that somebody holds.

use async_trait::async_trait;
use sqlx::{PgConnection, Row};

use super::PostgresStore;
use super::append::LOCK;
use super::session::Failure;
use crate::clock::Time;
use crate::event::Sequence;
use crate::store::retention::{LOOK, Looked, choose, looked};
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
    let query = query.bind(bounds.received.micros()).bind(bounds.finished.micros());
    let rows = query.fetch_all(&mut *connection).await?;
    let rows: Vec<Looked> = rows.iter().map(|row| looked!(row)).collect();
    let chosen = choose(&rows, &removal, &bounds);
    if chosen.events.is_empty() {
        return Ok(chosen.removed());
    }
    let sql = "WITH kept AS (
            UPDATE identities AS i SET body_hash = e.body_hash, expires_at = $2
            FROM events AS e WHERE i.event_seq = ANY ($1) AND e.seq = i.event_seq
        ), tried AS (
            DELETE FROM attempts AS a USING consumers AS c
            WHERE a.consumer_id = c.id AND a.event_seq = ANY ($1)
        ), done AS (
            DELETE FROM work AS w USING consumers AS c
            WHERE w.consumer_id = c.id AND w.event_seq = ANY ($1)
        ), acted AS (
            DELETE FROM effects WHERE event_seq = ANY ($1)
        ), varied AS (
            DELETE FROM variants WHERE event_seq = ANY ($1)
        ), read AS (
            DELETE FROM bodies WHERE event_seq = ANY ($1)
        )
        DELETE FROM events WHERE seq = ANY ($1)";
    let query = sqlx::query(sql).bind(&chosen.events).bind(bounds.expires.micros());
    query.execute(&mut *connection).await?;
    remove_lanes(connection, &chosen.lanes).await?;
    Ok(chosen.removed())
}

/// Removes the lanes of these conversations that no event is left of: as long as one is, its work
/// may become due again.
async fn remove_lanes(connection: &mut PgConnection, lanes: &[i64]) -> Done<()> {
    let sql = "SELECT l.consumer_id, l.lane FROM consumers AS c
               JOIN lanes AS l ON l.consumer_id = c.id AND l.lane = ANY ($1)
               WHERE l.head IS NULL
                 AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.conversation = l.lane)
               FOR UPDATE OF l SKIP LOCKED";
    let rows = sqlx::query(sql).bind(lanes).fetch_all(&mut *connection).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let (consumers, lanes): (Vec<i64>, Vec<i64>) =
        rows.iter().map(|row| (row.get::<i64, _>(0), row.get::<i64, _>(1))).unzip();
    let sql =
        "DELETE FROM lanes AS l USING unnest($1::bigint[], $2::bigint[]) AS g (consumer, lane)
               WHERE l.consumer_id = g.consumer AND l.lane = g.lane";
    sqlx::query(sql).bind(consumers).bind(lanes).execute(connection).await?;
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
