//! Appending to PostgreSQL: one lock, one look-up and one statement for all rows of a batch.
//!
//! Appends take turns. So numbers become visible in commit order, two appends cannot deadlock over
//! their keys, and what the look-up says still holds when the rows are written.

use std::collections::HashMap;

use sqlx::{PgConnection, Row};

use super::session::Failure;
use crate::clock::Time;
use crate::event::{Appended, NewEvent, Sequence, SourceId};
use crate::store::plan::{self, Key, Known, Plan};
use crate::store::{Batch, StoreError};

type Done<T> = std::result::Result<T, Failure>;

/// How to write rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// All in one statement.
    Together,
    /// One by one, those that the database does not take without what was derived.
    Careful,
}

macro_rules! lock {
    () => {
        "SELECT pg_advisory_xact_lock(hashtextextended('inboxd append in ' || current_schema(), 0))"
    };
}

/// Whatever gives numbers or must not miss an event that is being appended holds this lock to the
/// end of its transaction.
pub(super) const LOCK: &str = lock!();

/// Commits `batch` as [`crate::store::Store::append`] says.
pub(super) async fn append(
    connection: &mut PgConnection,
    batch: &Batch,
    manner: Manner,
) -> Done<Vec<Appended>> {
    if let Some(checkpoint) = &batch.checkpoint {
        super::pollers::checkpoint(connection, checkpoint).await?;
    }
    if batch.events.is_empty() {
        return Ok(Vec::new());
    }
    let opening = concat!(lock!(), "; SELECT nextval('sequence'), ", super::now!());
    let opening = sqlx::raw_sql(opening).fetch_all(&mut *connection).await?;
    let row = opening.last().ok_or(sqlx::Error::RowNotFound)?;
    let (next, now) = (row.get::<Sequence, _>(0), Time::from_micros(row.get(1)));
    let known = known(connection, &batch.events).await?;
    let plan = plan::plan(&batch.events, known, next);
    let rows: Vec<(Sequence, &NewEvent)> =
        plan.rows.iter().map(|(seq, place)| (*seq, &batch.events[*place])).collect();
    match manner {
        Manner::Together => insert(connection, now, &rows, &plan).await?,
        Manner::Careful => {
            let of_others = plan.identities.iter().filter(|new| new.seq < next).cloned();
            let (identities, tallies) = (of_others.collect(), plan.tallies.clone());
            let rest = Plan { identities, tallies, ..Plan::default() };
            insert(connection, now, &[], &rest).await?;
            for row in rows {
                insert_one(connection, now, row, &plan).await?;
            }
        }
    }
    repeats(connection, &batch.events, &plan).await?;
    Ok(plan.outcomes)
}

async fn known(connection: &mut PgConnection, events: &[NewEvent]) -> Done<HashMap<Key, Known>> {
    let (sources, keys): (Vec<i64>, Vec<Vec<u8>>) =
        plan::keys(events).into_iter().map(|(source, key)| (source.0, key)).unzip();
    let sql = "SELECT i.source_id, i.key, i.event_seq, coalesce(i.body_hash, e.body_hash),
               i.expires_at
        FROM unnest($1::bigint[], $2::bytea[]) AS k (source_id, key)
        JOIN identities AS i ON i.source_id = k.source_id AND i.key = k.key
        LEFT JOIN events AS e ON e.seq = i.event_seq";
    let rows = sqlx::query(sql).bind(sources).bind(keys).fetch_all(connection).await?;
    let mut known = HashMap::new();
    for row in rows {
        let hash: Option<Vec<u8>> = row.get(3);
        let body_hash = hash.and_then(|hash| hash.try_into().ok()).ok_or_else(|| {
            StoreError::Refused("an identity names no event and has no hash".to_owned())
        })?;
        let found = Known { seq: row.get(2), body_hash, expires_at: row.get(4) };
        known.insert((SourceId(row.get(0)), row.get(1)), found);
    }
    Ok(known)
}

async fn insert_one(
    connection: &mut PgConnection,
    now: Time,
    (seq, event): (Sequence, &NewEvent),
    plan: &Plan,
) -> Done<()> {
    let identities = plan.identities.iter().filter(|new| new.seq == seq).cloned().collect();
    let alone = Plan { identities, ..Plan::default() };
    sqlx::raw_sql("SAVEPOINT row").execute(&mut *connection).await?;
    if let Err(Failure::Database(error)) = insert(connection, now, &[(seq, event)], &alone).await {
        if !matches!(super::error::of(error), StoreError::Refused(_)) {
            return Err(StoreError::Unavailable("the connection was lost".to_owned()).into());
        }
        sqlx::raw_sql("ROLLBACK TO row").execute(&mut *connection).await?;
        insert(connection, now, &[(seq, &plan::bare(event))], &alone).await?;
    }
    sqlx::raw_sql("RELEASE row").execute(connection).await?;
    Ok(())
}

/// Writes rows with their bodies, identities, work and lanes, and counts on the sources.
async fn insert(
    connection: &mut PgConnection,
    now: Time,
    rows: &[(Sequence, &NewEvent)],
    plan: &Plan,
) -> Done<()> {
    // The last number is used up even where a later row is refused: it is not given again.
    let sql = "WITH new AS (
            SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[],
                $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[],
                $12::bigint[], $13::bytea[], $14::bigint[], $15::bigint[], $16::bigint[])
            AS e (seq, id, source_id, type, channel, account, external_id, origin, subject,
                conversation, occurred_at, received_at, body_hash, size, secret, flags)
        ), numbered AS (
            SELECT setval('sequence', max(seq)) FROM new HAVING max(seq) IS NOT NULL
        ), inserted AS (
            INSERT INTO events (seq, id, source_id, type, channel, account, external_id, origin,
                subject, conversation, occurred_at, received_at, body_hash, size, secret, flags,
                last_received_at)
            SELECT new.*, received_at FROM new
        ), kept AS (
            INSERT INTO bodies (event_seq, body, headers)
            SELECT * FROM unnest($1::bigint[], $17::bytea[], $18::text[])
        ), named AS (
            INSERT INTO identities (source_id, key, event_seq, body_hash, expires_at)
            SELECT * FROM unnest($19::bigint[], $20::bytea[], $21::bigint[], $28::bytea[],
                $29::bigint[])
        ), counted AS (
            UPDATE sources AS s SET stored = s.stored + t.stored,
                duplicates = s.duplicates + t.duplicates, conflicts = s.conflicts + t.conflicts,
                last_received_at = greatest(s.last_received_at, t.last)
            FROM unnest($22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[])
                AS t (id, stored, duplicates, conflicts, last)
            WHERE s.id = t.id
        ), made AS (
            INSERT INTO work (consumer_id, event_seq, pos, lane, due_at, since)
            SELECT c.id, new.seq, new.seq,
                   CASE c.ordering WHEN 'conversation' THEN new.conversation END, $27, $27
            FROM new CROSS JOIN consumers AS c
            WHERE (c.channels = '{}' OR new.channel = ANY (c.channels))
              AND (c.types = '{}' OR new.type = ANY (c.types))
              AND (c.source_names = '{}' OR
                   (SELECT name FROM sources WHERE id = new.source_id) = ANY (c.source_names))
            RETURNING consumer_id, lane, pos
        ), lanes_made AS (
            INSERT INTO lanes (consumer_id, lane, head, due_at, since)
            SELECT consumer_id, lane, min(pos), $27, $27 FROM made
            WHERE lane IS NOT NULL GROUP BY consumer_id, lane ORDER BY consumer_id, lane
            ON CONFLICT (consumer_id, lane) DO UPDATE SET head = excluded.head,
                due_at = excluded.due_at, since = excluded.since
                WHERE lanes.head IS NULL
        ), work_counted AS (
            UPDATE consumers AS c SET work_count = c.work_count + m.count
            FROM (SELECT consumer_id, count(*) AS count FROM made GROUP BY consumer_id) AS m
            WHERE c.id = m.consumer_id
        )
        SELECT count(*) FROM numbered";
    let attributes = |read: fn(&NewEvent) -> &str| -> Vec<&str> {
        rows.iter().map(|(_, event)| read(event)).collect()
    };
    let numbers = |read: fn(&NewEvent) -> Option<i64>| -> Vec<Option<i64>> {
        rows.iter().map(|(_, event)| read(event)).collect()
    };
    let tallies = &plan.tallies;
    let identities = &plan.identities;
    sqlx::query(sql)
        .bind(rows.iter().map(|(seq, _)| *seq).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, event)| event.id).collect::<Vec<_>>())
        .bind(numbers(|event| Some(event.source.0)))
        .bind(attributes(|event| &event.attributes.event_type))
        .bind(attributes(|event| &event.attributes.channel))
        .bind(attributes(|event| &event.attributes.account))
        .bind(attributes(|event| &event.attributes.external_id))
        .bind(attributes(|event| &event.attributes.origin))
        .bind(rows.iter().map(|(_, e)| e.attributes.subject.as_deref()).collect::<Vec<_>>())
        .bind(numbers(|event| event.attributes.subject.as_deref().map(plan::conversation)))
        .bind(numbers(|event| event.attributes.time.map(Time::micros)))
        .bind(numbers(|event| Some(event.received_at.micros())))
        .bind(rows.iter().map(|(_, event)| &event.body_hash[..]).collect::<Vec<_>>())
        .bind(numbers(|event| Some(crate::store::size(&event.body))))
        .bind(numbers(|event| event.secret))
        .bind(numbers(|event| Some(event.flags.0)))
        .bind(rows.iter().map(|(_, event)| &event.body[..]).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, event)| event.headers.as_deref()).collect::<Vec<_>>())
        .bind(identities.iter().map(|new| new.key.0.0).collect::<Vec<_>>())
        .bind(identities.iter().map(|new| &new.key.1[..]).collect::<Vec<_>>())
        .bind(identities.iter().map(|new| new.seq).collect::<Vec<_>>())
        .bind(tallies.iter().map(|(source, _)| source.0).collect::<Vec<_>>())
        .bind(tallies.iter().map(|(_, tally)| tally.stored).collect::<Vec<_>>())
        .bind(tallies.iter().map(|(_, tally)| tally.duplicates).collect::<Vec<_>>())
        .bind(tallies.iter().map(|(_, tally)| tally.conflicts).collect::<Vec<_>>())
        .bind(tallies.iter().map(|(_, tally)| tally.last.micros()).collect::<Vec<_>>())
        .bind(now.micros())
        .bind(
            identities
                .iter()
                .map(|new| new.removed.map(|(hash, _)| hash.to_vec()))
                .collect::<Vec<_>>(),
        )
        .bind(identities.iter().map(|new| new.removed.map(|(_, at)| at)).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}

async fn repeats(connection: &mut PgConnection, events: &[NewEvent], plan: &Plan) -> Done<()> {
    if !plan.repeats.is_empty() {
        let sql = "UPDATE events SET receipts = receipts + r.count, flags = events.flags | r.flags,
                          last_received_at = greatest(last_received_at, r.last)
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
                AS r (seq, count, last, flags) WHERE events.seq = r.seq";
        let repeats = &plan.repeats;
        sqlx::query(sql)
            .bind(repeats.iter().map(|(seq, _)| *seq).collect::<Vec<_>>())
            .bind(repeats.iter().map(|(_, repeat)| repeat.count).collect::<Vec<_>>())
            .bind(repeats.iter().map(|(_, repeat)| repeat.last.micros()).collect::<Vec<_>>())
            .bind(repeats.iter().map(|(_, repeat)| repeat.flags.0).collect::<Vec<_>>())
            .execute(&mut *connection)
            .await?;
    }
    for variant in &plan.variants {
        let event = &events[variant.event];
        let sql = "INSERT INTO variants (event_seq, body_hash, body, headers, secret, received_at,
                          last_received_at, receipts) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (event_seq, body_hash) DO UPDATE SET
                receipts = variants.receipts + excluded.receipts,
                last_received_at = greatest(variants.last_received_at, excluded.last_received_at)";
        let query = sqlx::query(sql).bind(variant.seq).bind(&event.body_hash[..]);
        let query = query.bind(&event.body[..]).bind(event.headers.as_deref()).bind(event.secret);
        let query = query.bind(event.received_at.micros()).bind(variant.last.micros());
        query.bind(variant.count).execute(&mut *connection).await?;
    }
    Ok(())
}
