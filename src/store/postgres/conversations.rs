//! Conversations, the latest first: on PostgreSQL.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::{PgConnection, Row};

use super::session::Failure;
use super::{PostgresStore, read, transaction};
use crate::conversation::{ConversationPage, ConversationQuery, TypedQuery, UNFINISHED_COUNTED};
use crate::event::{EventQuery, Page, Sequence};
use crate::store::conversations::{ENDS, LATEST, RECENT, choose, next, page, windows};
use crate::store::{Conversations, Result, bound, plan, query};

type Done<T> = std::result::Result<T, Failure>;

#[async_trait]
impl Conversations for PostgresStore {
    async fn conversations(&self, query: ConversationQuery) -> Result<ConversationPage> {
        transaction!(self, (query), |connection| conversations(connection, &query))
    }

    async fn typed_events(&self, query: TypedQuery) -> Result<Page> {
        transaction!(self, (query), |connection| typed_events(connection, &query))
    }
}

async fn conversations(
    connection: &mut PgConnection,
    query: &ConversationQuery,
) -> Done<ConversationPage> {
    let ends = sqlx::query(ENDS).fetch_one(&mut *connection).await?;
    let ends: (Option<Sequence>, Option<Sequence>) = (ends.get(0), ends.get(1));
    let mut latest: Vec<Sequence> = Vec::new();
    let mut looked_from = 0;
    for (from, before) in windows(ends, query) {
        let statement = sqlx::query_scalar(LATEST).bind(before).bind(from);
        let statement = statement.bind(query.channel.as_deref().map(storable));
        let statement = statement.bind(query.source.as_deref().map(storable));
        let statement = statement.bind(limit(query.limit - latest.len()));
        let found: Vec<Sequence> = statement.fetch_all(&mut *connection).await?;
        latest.extend(found);
        looked_from = from;
        if latest.len() >= query.limit {
            break;
        }
    }

    let sql = "SELECT c.seq, r.seq, r.size FROM events AS c
        CROSS JOIN LATERAL (
            SELECT n.seq, n.size FROM events AS n
            WHERE n.conversation = c.conversation AND n.subject = c.subject AND n.seq <= c.seq
            ORDER BY n.seq DESC LIMIT $2) AS r
        WHERE c.seq = ANY ($1)";
    let rows = sqlx::query(sql).bind(&latest).bind(RECENT).fetch_all(&mut *connection).await?;
    let recent = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2)));
    let (chosen, fits) = choose(&latest, recent, query.max_bytes);
    let is_whole = fits && latest.len() < query.limit;
    let next = next(&chosen, is_whole, looked_from, ends.0);

    let all = chosen.iter().flat_map(|(latest, before)| before.iter().chain([latest]));
    let all: Vec<Sequence> = all.copied().collect();
    let events = read::numbered(connection, &all).await?;
    let shown: Vec<Sequence> = chosen.iter().map(|(latest, _)| *latest).collect();
    Ok(page(chosen, events, unfinished(connection, &shown).await?, next))
}

/// How much work is unfinished in the conversations that these events belong to.
async fn unfinished(
    connection: &mut PgConnection,
    shown: &[Sequence],
) -> Done<HashMap<Sequence, i64>> {
    // A lane may be shared by two subjects.
    let sql = "SELECT c.seq, (SELECT count(*) FROM (
            SELECT 1 FROM consumers AS k
            JOIN work AS w ON w.consumer_id = k.id AND w.lane = c.conversation AND w.state < 2
            JOIN events AS e ON e.seq = w.event_seq AND e.subject = c.subject
            LIMIT $2) AS unfinished)
        FROM events AS c WHERE c.seq = ANY ($1)";
    let statement = sqlx::query(sql).bind(shown).bind(UNFINISHED_COUNTED);
    let rows = statement.fetch_all(&mut *connection).await?;
    let mut counts: HashMap<Sequence, i64> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();

    let sql = "SELECT k.id FROM consumers AS k WHERE EXISTS (
        SELECT 1 FROM work AS w WHERE w.consumer_id = k.id AND w.lane IS NULL AND w.state < 2)";
    let unordered: Vec<i64> = sqlx::query_scalar(sql).fetch_all(&mut *connection).await?;
    if unordered.is_empty() {
        return Ok(counts);
    }
    let sql = "SELECT c.seq, (SELECT count(*) FROM (
                SELECT n.seq FROM events AS n
                WHERE n.conversation = c.conversation AND n.subject = c.subject
                ORDER BY n.seq DESC LIMIT $3) AS n
            JOIN work AS w ON w.consumer_id = ANY ($2) AND w.event_seq = n.seq
            WHERE w.state < 2 AND w.lane IS NULL)
        FROM events AS c WHERE c.seq = ANY ($1)";
    let statement = sqlx::query(sql).bind(shown).bind(unordered).bind(UNFINISHED_COUNTED);
    for row in statement.fetch_all(connection).await? {
        *counts.entry(row.get(0)).or_default() += row.get::<i64, _>(1);
    }
    Ok(counts)
}

async fn typed_events(connection: &mut PgConnection, query: &TypedQuery) -> Done<Page> {
    let sql = "SELECT e.seq, e.size FROM events AS e
        WHERE e.conversation = $1 AND e.seq > $2 AND e.subject = $3 AND e.type = ANY ($4)
        ORDER BY e.seq LIMIT $5";
    let subject = storable(&query.subject);
    let types: Vec<String> = query.types.iter().map(|name| storable(name)).collect();
    let statement = sqlx::query(sql).bind(plan::conversation(&query.subject)).bind(query.after);
    let statement = statement.bind(subject).bind(types).bind(limit(query.limit));
    let rows = statement.fetch_all(&mut *connection).await?;
    let bounds =
        EventQuery { limit: query.limit, max_bytes: query.max_bytes, ..EventQuery::default() };
    let (page, more) = query::page(rows.iter().map(|row| (row.get(0), row.get(1))), &bounds);
    let events = read::numbered(connection, &page).await?;
    Ok(Page { events: query::in_order(&page, events.into_iter()), more })
}

/// No row can hold what PostgreSQL's text cannot.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn limit(limit: usize) -> i64 {
    bound(u64::try_from(limit).unwrap_or(u64::MAX))
}
