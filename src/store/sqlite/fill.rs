//! Making the events that were there before a consumer its work: on SQLite.

use sqlx::{Row, SqliteConnection};

use super::error::of;
use super::{consumers, work};
use crate::clock::Time;
use crate::consumer::Start;
use crate::event::Sequence;
use crate::store::Result;
use crate::work::Consumer;

/// See [`crate::store::Consumers::add_consumer`].
pub(super) async fn add(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &Consumer,
    start: Start,
) -> Result<bool> {
    let is_new = consumers::create(connection, now, consumer).await?;
    let since = match start {
        Start::At(time) => Some(time.micros()),
        Start::Beginning | Start::Now => None,
    };
    if is_new && start != Start::Now {
        let sql = "UPDATE consumers SET fill_next = (SELECT min(seq) FROM events),
                          fill_last = (SELECT max(seq) FROM events), fill_since = $2
                   WHERE name = $1";
        let query = sqlx::query(sql).bind(&consumer.name).bind(since);
        query.execute(connection).await.map_err(of)?;
    }
    Ok(is_new)
}

/// See [`crate::store::Consumers::fill_consumers`].
pub(super) async fn fill(
    connection: &mut SqliteConnection,
    now: Time,
    limit: usize,
) -> Result<bool> {
    let sql = "SELECT id, fill_next, fill_last FROM consumers WHERE fill_next IS NOT NULL
               ORDER BY id LIMIT 1";
    let Some(row) = sqlx::query(sql).fetch_optional(&mut *connection).await.map_err(of)? else {
        return Ok(false);
    };
    let (consumer, next, last): (i64, Sequence, Sequence) = (row.get(0), row.get(1), row.get(2));
    let sql = "SELECT max(seq) FROM (
                   SELECT seq FROM events WHERE seq BETWEEN $1 AND $2 ORDER BY seq LIMIT $3)";
    let query = sqlx::query_scalar(sql).bind(next).bind(last).bind(work::limit(limit));
    let end: Option<Sequence> = query.fetch_one(&mut *connection).await.map_err(of)?;
    if let Some(end) = end {
        make(connection, now, consumer, next, end).await?;
    }
    let after = end.filter(|end| *end < last).map(|end| end + 1);
    let sql = "UPDATE consumers SET fill_next = $2, fill_last = iif($2 IS NULL, NULL, fill_last),
                      fill_since = iif($2 IS NULL, NULL, fill_since) WHERE id = $1";
    let query = sqlx::query(sql).bind(consumer).bind(after);
    query.execute(&mut *connection).await.map_err(of)?;
    let sql = "SELECT count(*) > 0 FROM consumers WHERE fill_next IS NOT NULL";
    sqlx::query_scalar(sql).fetch_one(connection).await.map_err(of)
}

/// Makes the work of the events numbered `first..=last` that one consumer wants, as
/// [`work::make`] does for all consumers. A lane may have a later head already.
async fn make(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: i64,
    first: Sequence,
    last: Sequence,
) -> Result<()> {
    let sql = "INSERT INTO work (consumer_id, event_seq, pos, lane, due_at, since)
        SELECT c.id, e.seq, e.seq, CASE c.ordering WHEN 'conversation' THEN e.conversation END, $4, $4
        FROM consumers AS c CROSS JOIN events AS e
        WHERE c.id = $1 AND e.seq BETWEEN $2 AND $3
          AND (c.fill_since IS NULL OR e.received_at >= c.fill_since)
          AND (c.channels = '[]' OR e.channel IN (SELECT value FROM json_each(c.channels)))
          AND (c.types = '[]' OR e.type IN (SELECT value FROM json_each(c.types)))
          AND (c.source_names = '[]' OR (SELECT name FROM sources WHERE id = e.source_id)
                                        IN (SELECT value FROM json_each(c.source_names)))
        ON CONFLICT DO NOTHING";
    let query = sqlx::query(sql).bind(consumer).bind(first).bind(last).bind(now.micros());
    let made = query.execute(&mut *connection).await.map_err(of)?.rows_affected();
    let sql = "UPDATE consumers SET work_count = work_count + $2 WHERE id = $1";
    let query = sqlx::query(sql).bind(consumer).bind(crate::store::bound(made));
    query.execute(&mut *connection).await.map_err(of)?;
    // Beside min(), bare columns are those of the row that has it.
    let sql = "INSERT INTO lanes (consumer_id, lane, head, due_at, since)
        SELECT consumer_id, lane, min(pos), due_at, since FROM work
        WHERE consumer_id = $1 AND event_seq BETWEEN $2 AND $3 AND lane IS NOT NULL AND state < 2
        GROUP BY lane
        ON CONFLICT DO UPDATE SET head = excluded.head, due_at = excluded.due_at,
                                  since = excluded.since
            WHERE lanes.head IS NULL OR lanes.head > excluded.head";
    let query = sqlx::query(sql).bind(consumer).bind(first).bind(last);
    query.execute(connection).await.map(drop).map_err(of)
}
