//! Reading events on SQLite, beside the writer and never in a transaction of its own.

use sqlx::{AssertSqlSafe, Row, SqliteConnection};
use uuid::Uuid;

use super::error::of;
use crate::event::{Event, EventDetail, EventQuery, Page, Sequence};
use crate::store::Result;
use crate::store::due::Claimed;
use crate::store::query::{
    self, ATTEMPTS_OF_EVENT, DETAIL, VARIANTS, Value, WORK_OF_EVENT, event, event_columns,
};
use crate::work::Delivery;

/// See [`crate::store::Store::events`].
pub(super) async fn events(connection: &mut SqliteConnection, query: &EventQuery) -> Result<Page> {
    loop {
        let page = page(connection, query).await?;
        // All of a page may be removed while it is read: then the page is what stands behind it.
        if !page.events.is_empty() || !page.more {
            return Ok(page);
        }
    }
}

async fn page(connection: &mut SqliteConnection, query: &EventQuery) -> Result<Page> {
    let (sql, values) = query::events(query);
    let mut statement = sqlx::query(AssertSqlSafe(sql));
    for value in values {
        statement = match value {
            Value::Text(text) => statement.bind(text),
            Value::Integer(number) => statement.bind(number),
        };
    }
    let rows = statement.fetch_all(&mut *connection).await.map_err(of)?;
    let (page, more) = query::page(rows.iter().map(|row| (row.get(0), row.get(1))), query);
    let events = numbered(connection, &page).await?;
    Ok(Page { events: query::in_order(&page, events.into_iter()), more })
}

/// The events of these numbers, in any order.
pub(super) async fn numbered(
    connection: &mut SqliteConnection,
    page: &[Sequence],
) -> Result<Vec<Event>> {
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        " FROM json_each($1) AS j CROSS JOIN events AS e ON e.seq = j.value
          JOIN sources AS s ON s.id = e.source_id JOIN bodies AS b ON b.event_seq = e.seq"
    );
    let page = super::json(page.iter().copied());
    let rows = sqlx::query(sql).bind(page).fetch_all(connection).await.map_err(of)?;
    Ok(rows.iter().map(|row| event!(row)).collect())
}

/// See [`crate::store::Store::newest`].
pub(super) async fn newest(connection: &mut SqliteConnection) -> Result<Sequence> {
    let newest = sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM events");
    newest.fetch_one(connection).await.map_err(of)
}

pub(super) async fn event(
    connection: &mut SqliteConnection,
    id: Uuid,
) -> Result<Option<EventDetail>> {
    let row = sqlx::query(DETAIL).bind(id).fetch_optional(&mut *connection).await.map_err(of)?;
    let Some(row) = row else { return Ok(None) };
    let event = event!(row);
    let variants = sqlx::query(VARIANTS).bind(event.sequence).fetch_all(&mut *connection).await;
    let variants = variants.map_err(of)?;
    let work = sqlx::query(WORK_OF_EVENT).bind(event.sequence).fetch_all(&mut *connection).await;
    let work = work.map_err(of)?;
    let attempts = sqlx::query(ATTEMPTS_OF_EVENT).bind(event.sequence).fetch_all(connection).await;
    let attempts = attempts.map_err(of)?;
    Ok(Some(query::detail!(row, event, variants, work, attempts)))
}

/// The deliveries of what was claimed, in order of receipt.
pub(super) async fn deliveries(
    connection: &mut SqliteConnection,
    claimed: &Claimed,
) -> Result<Vec<Delivery>> {
    if claimed.work.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<Sequence> = claimed.work.iter().map(|(_, event, _)| *event).collect();
    Ok(claimed.deliveries(numbered(connection, &events).await?.into_iter()))
}
