//! Conversations, the latest first: on SQLite.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::{Row, SqliteConnection};

use super::error::of;
use super::{SqliteStore, read};
use crate::conversation::{ConversationPage, ConversationQuery, TypedQuery, UNFINISHED_COUNTED};
use crate::event::{EventQuery, Page, Sequence};
use crate::store::conversations::{ENDS, LATEST, RECENT, choose, next, page, windows};
use crate::store::{Conversations, Result, bound, plan, query};

#[async_trait]
impl Conversations for SqliteStore {
    async fn conversations(&self, query: ConversationQuery) -> Result<ConversationPage> {
        conversations(&mut *self.reader().await?, &query).await
    }

    async fn typed_events(&self, query: TypedQuery) -> Result<Page> {
        typed_events(&mut *self.reader().await?, &query).await
    }
}

async fn conversations(
    connection: &mut SqliteConnection,
    query: &ConversationQuery,
) -> Result<ConversationPage> {
    let ends = sqlx::query(ENDS).fetch_one(&mut *connection).await.map_err(of)?;
    let ends: (Option<Sequence>, Option<Sequence>) = (ends.get(0), ends.get(1));
    let mut latest: Vec<Sequence> = Vec::new();
    let mut looked_from = 0;
    for (from, before) in windows(ends, query) {
        let statement = sqlx::query_scalar(LATEST).bind(before).bind(from);
        let statement = statement.bind(&query.channel).bind(&query.source);
        let statement = statement.bind(limit(query.limit - latest.len()));
        let found: Vec<Sequence> = statement.fetch_all(&mut *connection).await.map_err(of)?;
        latest.extend(found);
        looked_from = from;
        if latest.len() >= query.limit {
            break;
        }
    }

    let sql = "SELECT c.seq, r.seq, r.size FROM json_each($1) AS j
        CROSS JOIN events AS c ON c.seq = j.value
        CROSS JOIN events AS r ON r.seq IN (
            SELECT n.seq FROM events AS n INDEXED BY events_conversation
            WHERE n.conversation = c.conversation AND n.subject = c.subject AND n.seq <= c.seq
            ORDER BY n.seq DESC LIMIT $2)";
    let statement = sqlx::query(sql).bind(super::json(latest.iter().copied())).bind(RECENT);
    let rows = statement.fetch_all(&mut *connection).await.map_err(of)?;
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
    connection: &mut SqliteConnection,
    shown: &[Sequence],
) -> Result<HashMap<Sequence, i64>> {
    let shown = super::json(shown.iter().copied());
    // A lane may be shared by two subjects.
    let sql = "SELECT c.seq, (SELECT count(*) FROM (SELECT 1 FROM consumers
            CROSS JOIN work AS w INDEXED BY work_lane
                ON w.consumer_id = consumers.id AND w.lane = c.conversation AND w.state < 2
               AND w.lane IS NOT NULL
            CROSS JOIN events AS e ON e.seq = w.event_seq AND e.subject = c.subject
            LIMIT $2))
        FROM json_each($1) AS j CROSS JOIN events AS c ON c.seq = j.value";
    let statement = sqlx::query(sql).bind(&shown).bind(UNFINISHED_COUNTED);
    let rows = statement.fetch_all(&mut *connection).await.map_err(of)?;
    let mut counts: HashMap<Sequence, i64> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();

    let sql = "SELECT consumers.id FROM consumers WHERE EXISTS (
        SELECT 1 FROM work AS w INDEXED BY work_due
        WHERE w.consumer_id = consumers.id AND w.lane IS NULL AND w.state < 2)";
    let unordered: Vec<i64> =
        sqlx::query_scalar(sql).fetch_all(&mut *connection).await.map_err(of)?;
    if unordered.is_empty() {
        return Ok(counts);
    }
    let sql = "SELECT c.seq, (SELECT count(*) FROM (
                SELECT n.seq FROM events AS n INDEXED BY events_conversation
                WHERE n.conversation = c.conversation AND n.subject = c.subject
                ORDER BY n.seq DESC LIMIT $3) AS n
            CROSS JOIN json_each($2) AS k
            CROSS JOIN work AS w ON w.consumer_id = k.value AND w.event_seq = n.seq
            WHERE w.state < 2 AND w.lane IS NULL)
        FROM json_each($1) AS j CROSS JOIN events AS c ON c.seq = j.value";
    let statement = sqlx::query(sql).bind(&shown).bind(super::json(unordered.into_iter()));
    let statement = statement.bind(UNFINISHED_COUNTED);
    for row in statement.fetch_all(connection).await.map_err(of)? {
        *counts.entry(row.get(0)).or_default() += row.get::<i64, _>(1);
    }
    Ok(counts)
}

async fn typed_events(connection: &mut SqliteConnection, query: &TypedQuery) -> Result<Page> {
    let sql = "SELECT e.seq, e.size FROM events AS e INDEXED BY events_conversation
        WHERE e.conversation = $1 AND e.seq > $2 AND e.subject = $3
          AND e.type IN (SELECT value FROM json_each($4))
        ORDER BY e.seq LIMIT $5";
    let statement = sqlx::query(sql).bind(plan::conversation(&query.subject)).bind(query.after);
    let types = super::json(query.types.iter().map(String::as_str));
    let statement = statement.bind(&query.subject).bind(types).bind(limit(query.limit));
    let rows = statement.fetch_all(&mut *connection).await.map_err(of)?;
    let bounds =
        EventQuery { limit: query.limit, max_bytes: query.max_bytes, ..EventQuery::default() };
    let (page, more) = query::page(rows.iter().map(|row| (row.get(0), row.get(1))), &bounds);
    let events = read::numbered(connection, &page).await?;
    Ok(Page { events: query::in_order(&page, events.into_iter()), more })
}

fn limit(limit: usize) -> i64 {
    bound(u64::try_from(limit).unwrap_or(u64::MAX))
}
