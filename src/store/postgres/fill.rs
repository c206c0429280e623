//! Making the events that were there before a consumer its work: on PostgreSQL.
//!
//! Whoever does it holds the lock of appends: so no two do it at the same time, and nobody changes
//! the lanes of a consumer that is claimed from by nobody yet.

use sqlx::{PgConnection, Row};

use super::session::Failure;
use super::{append, consumers, work};
use crate::consumer::Start;
use crate::event::Sequence;
use crate::work::Consumer;

type Done<T> = std::result::Result<T, Failure>;

/// See [`crate::store::Consumers::add_consumer`].
pub(super) async fn add(
    connection: &mut PgConnection,
    consumer: &Consumer,
    start: Start,
) -> Done<bool> {
    let is_new = consumers::create(connection, consumer).await?;
    let since = match start {
        Start::At(time) => Some(time.micros()),
        Start::Beginning | Start::Now => None,
    };
    if is_new && start != Start::Now {
        let sql = "UPDATE consumers SET fill_next = (SELECT min(seq) FROM events),
                          fill_last = (SELECT max(seq) FROM events), fill_since = $2
                   WHERE name = $1";
        sqlx::query(sql).bind(&consumer.name).bind(since).execute(connection).await?;
    }
    Ok(is_new)
}

/// See [`crate::store::Consumers::fill_consumers`].
pub(super) async fn fill(connection: &mut PgConnection, limit: usize) -> Done<bool> {
    // Receivers wait for nobody who has nothing to do.
    if !fills(connection).await? {
        return Ok(false);
    }
    sqlx::raw_sql(append::LOCK).execute(&mut *connection).await?;
    let sql = "SELECT id, fill_next, fill_last FROM consumers WHERE fill_next IS NOT NULL
               ORDER BY id LIMIT 1 FOR UPDATE";
    let Some(row) = sqlx::query(sql).fetch_optional(&mut *connection).await? else {
        return Ok(false);
    };
    let (consumer, next, last): (i64, Sequence, Sequence) = (row.get(0), row.get(1), row.get(2));
    let sql = "SELECT max(seq) FROM (
                   SELECT seq FROM events WHERE seq BETWEEN $1 AND $2 ORDER BY seq LIMIT $3) AS e";
    let query = sqlx::query_scalar(sql).bind(next).bind(last).bind(work::limit(limit));
    let end: Option<Sequence> = query.fetch_one(&mut *connection).await?;
    if let Some(end) = end {
        make(connection, consumer, next, end).await?;
    }
    let after = end.filter(|end| *end < last).map(|end| end + 1);
    let sql = "UPDATE consumers SET fill_next = $2,
                      fill_last = CASE WHEN $2 IS NOT NULL THEN fill_last END,
                      fill_since = CASE WHEN $2 IS NOT NULL THEN fill_since END WHERE id = $1";
    sqlx::query(sql).bind(consumer).bind(after).execute(&mut *connection).await?;
    fills(connection).await
}

async fn fills(connection: &mut PgConnection) -> Done<bool> {
    let sql = "SELECT count(*) > 0 FROM consumers WHERE fill_next IS NOT NULL";
    Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
}

/// Makes the work of the events numbered `first..=last` that one consumer wants, as an append does
/// for all consumers. A lane may have a later head already.
async fn make(
    connection: &mut PgConnection,
    consumer: i64,
    first: Sequence,
    last: Sequence,
) -> Done<()> {
    let sql = concat!(
        "WITH made AS (
            INSERT INTO work (consumer_id, event_seq, pos, lane, due_at, since)
            SELECT c.id, e.seq, e.seq, CASE c.ordering WHEN 'conversation' THEN e.conversation END,
                   t.now, t.now
            FROM (SELECT ",
        super::now!(),
        " AS now) AS t CROSS JOIN consumers AS c CROSS JOIN events AS e
            WHERE c.id = $1 AND e.seq BETWEEN $2 AND $3
              AND (c.fill_since IS NULL OR e.received_at >= c.fill_since)
              AND (c.channels = '{}' OR e.channel = ANY (c.channels))
              AND (c.types = '{}' OR e.type = ANY (c.types))
              AND (c.source_names = '{}' OR
                   (SELECT name FROM sources WHERE id = e.source_id) = ANY (c.source_names))
            ON CONFLICT (consumer_id, event_seq) DO NOTHING
            RETURNING consumer_id, lane, pos, due_at
         ), lanes_made AS (
            INSERT INTO lanes (consumer_id, lane, head, due_at, since)
            SELECT consumer_id, lane, min(pos), min(due_at), min(due_at) FROM made
            WHERE lane IS NOT NULL GROUP BY consumer_id, lane ORDER BY consumer_id, lane
            ON CONFLICT (consumer_id, lane) DO UPDATE SET head = excluded.head,
                due_at = excluded.due_at, since = excluded.since
                WHERE lanes.head IS NULL OR lanes.head > excluded.head
         )
         UPDATE consumers SET work_count = work_count + (SELECT count(*) FROM made) WHERE id = $1"
    );
    sqlx::query(sql).bind(consumer).bind(first).bind(last).execute(connection).await?;
    Ok(())
}
