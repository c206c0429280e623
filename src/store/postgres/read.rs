//! Reading events on PostgreSQL.

use sqlx::{AssertSqlSafe, PgConnection, Row};
use uuid::Uuid;

use super::session::Failure;
use crate::event::{Event, EventDetail, EventQuery, Page, Sequence};
use crate::store::due::Claimed;
use crate::store::query::{
    self, ATTEMPTS_OF_EVENT, AUDIT, DETAIL, VARIANTS, Value, WORK_OF_EVENT, event, event_columns,
};
use crate::work::Delivery;

type Done<T> = std::result::Result<T, Failure>;

/// See [`crate::store::Store::events`].
pub(super) async fn events(connection: &mut PgConnection, query: &EventQuery) -> Done<Page> {
    loop {
        let page = page(connection, query).await?;
        // All of a page may be removed while it is read: then the page is what stands behind it.
        if !page.events.is_empty() || !page.more {
            return Ok(page);
        }
    }
}

async fn page(connection: &mut PgConnection, query: &EventQuery) -> Done<Page> {
    let (sql, values) = query::events(query);
    let mut statement = sqlx::query(AssertSqlSafe(sql));
    for value in values {
        statement = match value {
            // No row can hold what PostgreSQL's text cannot.
            Value::Text(text) => statement.bind(text.replace('\0', "\u{fffd}")),
            Value::Integer(number) => statement.bind(number),
        };
    }
    let rows = statement.fetch_all(&mut *connection).await?;
    let (page, more) = query::page(rows.iter().map(|row| (row.get(0), row.get(1))), query);
    let events = numbered(connection, &page).await?;
    Ok(Page { events: query::in_order(&page, events.into_iter()), more })
}

/// The events of these numbers, in any order.
pub(super) async fn numbered(connection: &mut PgConnection, page: &[Sequence]) -> Done<Vec<Event>> {
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        " FROM events AS e JOIN sources AS s ON s.id = e.source_id
          JOIN bodies AS b ON b.event_seq = e.seq WHERE e.seq = ANY ($1)"
    );
    let rows = sqlx::query(sql).bind(page).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| event!(row)).collect())
}

/// See [`crate::store::Store::newest`].
pub(super) async fn newest(connection: &mut PgConnection) -> Done<Sequence> {
    let newest = sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM events");
    Ok(newest.fetch_one(connection).await?)
}

pub(super) async fn event(connection: &mut PgConnection, id: Uuid) -> Done<Option<EventDetail>> {
    let row = sqlx::query(DETAIL).bind(id).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(None) };
    let event = event!(row);
    let variants = sqlx::query(VARIANTS).bind(event.sequence).fetch_all(&mut *connection).await?;
    let work = sqlx::query(WORK_OF_EVENT).bind(event.sequence).fetch_all(&mut *connection).await?;
    let attempts = sqlx::query(ATTEMPTS_OF_EVENT).bind(event.sequence).fetch_all(connection);
    let attempts = attempts.await?;
    Ok(Some(query::detail!(row, event, variants, work, attempts)))
}

/// The deliveries of what was claimed, in order of receipt.
pub(super) async fn deliveries(
    connection: &mut PgConnection,
    claimed: &Claimed,
) -> Done<Vec<Delivery>> {
    if claimed.work.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<Sequence> = claimed.work.iter().map(|(_, event, _)| *event).collect();
    Ok(claimed.deliveries(numbered(connection, &events).await?.into_iter()))
}

pub(super) async fn audit(connection: &mut PgConnection) -> Done<Vec<String>> {
    let mut found = Vec::new();
    for (sentence, sql) in AUDIT {
        let count: i64 = sqlx::query_scalar(sql).fetch_one(&mut *connection).await?;
        if count > 0 {
            found.push(format!("{count} {sentence}"));
        }
    }
    Ok(found)
}
