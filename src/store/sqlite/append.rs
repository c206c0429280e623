//! Appending to SQLite: identities, rows, bodies, work and lanes in the writer's transaction.

use std::collections::HashMap;

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, Row, SqliteConnection};

use super::error::of;
use crate::clock::Time;
use crate::event::{Appended, NewEvent, Sequence, SourceId};
use crate::store::plan::{self, Key, Known, Plan};
use crate::store::{Batch, Result, StoreError};

/// Rows in one statement. Larger groups gain nothing more; a few sizes keep every statement in the
/// cache of prepared ones.
const GROUPS: [usize; 4] = [64, 16, 4, 1];

/// Commits `batch` as [`crate::store::Store::append`] says.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    now: Time,
    batch: &Batch,
) -> Result<Vec<Appended>> {
    if let Some(checkpoint) = &batch.checkpoint {
        super::pollers::checkpoint(connection, now, checkpoint).await?;
    }
    if batch.events.is_empty() {
        return Ok(Vec::new());
    }
    let known = known(connection, &batch.events).await?;
    let last = sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
    let last: Option<Sequence> = last.fetch_optional(&mut *connection).await.map_err(of)?;
    let plan = plan::plan(&batch.events, known, last.unwrap_or(0) + 1);
    if !plan.rows.is_empty() {
        new_rows(connection, now, &batch.events, &plan).await?;
    }
    identities(connection, &plan).await?;
    repeats(connection, &batch.events, &plan).await?;
    Ok(plan.outcomes)
}

async fn known(
    connection: &mut SqliteConnection,
    events: &[NewEvent],
) -> Result<HashMap<Key, Known>> {
    let mut known = HashMap::new();
    let keys = plan::keys(events);
    for group in groups(&keys) {
        let sql = values(
            "SELECT i.source_id, i.key, i.event_seq, coalesce(i.body_hash, e.body_hash),
                    i.expires_at FROM (",
            2,
            group.len(),
            ") AS k CROSS JOIN identities AS i ON i.source_id = k.column1 AND i.key = k.column2
              LEFT JOIN events AS e ON e.seq = i.event_seq",
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (source, key) in group {
            query = query.bind(source.0).bind(key);
        }
        for row in query.fetch_all(&mut *connection).await.map_err(of)? {
            let key = (SourceId(row.get(0)), row.get(1));
            let hash: Option<Vec<u8>> = row.get(3);
            let body_hash = hash.and_then(|hash| hash.try_into().ok()).ok_or_else(|| {
                StoreError::Refused("an identity names no event and has no hash".to_owned())
            })?;
            known.insert(key, Known { seq: row.get(2), body_hash, expires_at: row.get(4) });
        }
    }
    Ok(known)
}

/// Inserts what is new; a row that the database does not take goes in bare.
async fn new_rows(
    connection: &mut SqliteConnection,
    now: Time,
    events: &[NewEvent],
    plan: &Plan,
) -> Result<()> {
    let rows: Vec<(Sequence, &NewEvent)> =
        plan.rows.iter().map(|(seq, place)| (*seq, &events[*place])).collect();
    for group in groups(&rows) {
        match insert_events(connection, group).await {
            Ok(()) => {}
            Err(StoreError::Refused(_)) => {
                // A statement that fails leaves nothing of itself, so one by one is safe.
                for (seq, event) in group {
                    match insert_events(connection, &[(*seq, *event)]).await {
                        Err(StoreError::Refused(_)) => {
                            insert_events(connection, &[(*seq, &plan::bare(event))]).await?;
                        }
                        inserted => inserted?,
                    }
                }
            }
            Err(error) => return Err(error),
        }
        insert(
            connection,
            "INSERT INTO bodies (event_seq, body, headers) ",
            3,
            group,
            |row, to| {
                to.add(row.0)?;
                to.add(&row.1.body[..])?;
                to.add(row.1.headers.as_deref())
            },
        )
        .await?;
    }
    let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { return Ok(()) };
    super::work::make(connection, now, *first, *last).await
}

/// Inserts new identities; a row that was there before may gain some.
async fn identities(connection: &mut SqliteConnection, plan: &Plan) -> Result<()> {
    let sql = "INSERT INTO identities (source_id, key, event_seq, body_hash, expires_at) ";
    for group in groups(&plan.identities) {
        insert(connection, sql, 5, group, |new, to| {
            let (source, key) = &new.key;
            to.add(source.0)?;
            to.add(&key[..])?;
            to.add(new.seq)?;
            to.add(new.removed.as_ref().map(|(hash, _)| &hash[..]))?;
            to.add(new.removed.map(|(_, expires_at)| expires_at))
        })
        .await?;
    }
    Ok(())
}

async fn insert_events(
    connection: &mut SqliteConnection,
    rows: &[(Sequence, &NewEvent)],
) -> Result<()> {
    let sql = "INSERT INTO events (seq, id, source_id, type, channel, account, external_id, origin,
         subject, conversation, occurred_at, received_at, body_hash, size, secret,
         flags, last_received_at) ";
    insert(connection, sql, 17, rows, |(seq, event), to| {
        let attributes = &event.attributes;
        to.add(*seq)?;
        to.add(event.id)?;
        to.add(event.source.0)?;
        to.add(&attributes.event_type)?;
        to.add(&attributes.channel)?;
        to.add(&attributes.account)?;
        to.add(&attributes.external_id)?;
        to.add(&attributes.origin)?;
        to.add(attributes.subject.as_deref())?;
        to.add(attributes.subject.as_deref().map(plan::conversation))?;
        to.add(attributes.time.map(Time::micros))?;
        to.add(event.received_at.micros())?;
        to.add(&event.body_hash[..])?;
        to.add(crate::store::size(&event.body))?;
        to.add(event.secret)?;
        to.add(event.flags.0)?;
        to.add(event.received_at.micros())
    })
    .await
}

async fn repeats(
    connection: &mut SqliteConnection,
    events: &[NewEvent],
    plan: &Plan,
) -> Result<()> {
    for (seq, repeat) in &plan.repeats {
        let sql = "UPDATE events SET receipts = receipts + $2, flags = flags | $4,
                          last_received_at = max(last_received_at, $3) WHERE seq = $1";
        let query = sqlx::query(sql).bind(seq).bind(repeat.count);
        let query = query.bind(repeat.last.micros()).bind(repeat.flags.0);
        query.execute(&mut *connection).await.map_err(of)?;
    }
    for variant in &plan.variants {
        let event = &events[variant.event];
        let sql = "INSERT INTO variants (event_seq, body_hash, body, headers, secret, received_at,
                          last_received_at, receipts) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                   ON CONFLICT DO UPDATE SET receipts = receipts + excluded.receipts,
                          last_received_at = max(last_received_at, excluded.last_received_at)";
        let query = sqlx::query(sql).bind(variant.seq).bind(&event.body_hash[..]);
        let query = query.bind(&event.body[..]).bind(event.headers.as_deref()).bind(event.secret);
        let query = query.bind(event.received_at.micros()).bind(variant.last.micros());
        query.bind(variant.count).execute(&mut *connection).await.map_err(of)?;
    }
    for (source, tally) in &plan.tallies {
        let sql = "UPDATE sources SET stored = stored + $2, duplicates = duplicates + $3,
                          conflicts = conflicts + $4,
                          last_received_at = max(coalesce(last_received_at, $5), $5) WHERE id = $1";
        let query = sqlx::query(sql).bind(source.0).bind(tally.stored).bind(tally.duplicates);
        let query = query.bind(tally.conflicts).bind(tally.last.micros());
        query.execute(&mut *connection).await.map_err(of)?;
    }
    Ok(())
}

type Added = std::result::Result<(), sqlx::error::BoxDynError>;

/// One statement for all of `rows`, `bind` giving the values of each.
async fn insert<T>(
    connection: &mut SqliteConnection,
    sql: &str,
    columns: usize,
    rows: &[T],
    bind: impl Fn(&T, &mut SqliteArguments) -> Added,
) -> Result<()> {
    let mut arguments = SqliteArguments::default();
    for row in rows {
        bind(row, &mut arguments).map_err(|error| of(sqlx::Error::Encode(error)))?;
    }
    let sql = values(sql, columns, rows.len(), "");
    let query = sqlx::query_with(AssertSqlSafe(sql), arguments);
    query.execute(connection).await.map(drop).map_err(of)
}

/// `before VALUES (?, …), … after`.
fn values(before: &str, columns: usize, rows: usize, after: &str) -> String {
    let row = format!("({})", vec!["?"; columns].join(", "));
    format!("{before}VALUES {}{after}", vec![row; rows].join(", "))
}

fn groups<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = GROUPS.into_iter().find(|size| *size <= rows.len())?;
        let (group, rest) = rows.split_at(size);
        rows = rest;
        Some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_cover_all_rows_in_order() {
        let rows: Vec<usize> = (0..151).collect();
        assert_eq!(groups(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        let sizes: Vec<usize> = groups(&rows).map(<[usize]>::len).collect();
        assert_eq!(sizes, [64, 64, 16, 4, 1, 1, 1]);
    }
}
