//! Sources and quarantine on SQLite.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::error::of;
use crate::clock::Time;
use crate::event::SourceId;
use crate::source::{QuarantineKind, QuarantineLimits, Refused, Source, SourceKind, SourceState};
use crate::store::Result;
use crate::store::query::SOURCES;

pub(super) async fn register(
    connection: &mut SqliteConnection,
    now: Time,
    kind: SourceKind,
    name: &str,
) -> Result<SourceId> {
    let sql = "INSERT INTO sources (kind, name, created_at) VALUES ($1, $2, $3)
               ON CONFLICT (kind, name) DO UPDATE SET forgotten_at = NULL RETURNING id";
    let query = sqlx::query_scalar(sql).bind(kind.name()).bind(name).bind(now.micros());
    query.fetch_one(connection).await.map(SourceId).map_err(of)
}

pub(super) async fn list(connection: &mut SqliteConnection) -> Result<Vec<Source>> {
    let rows = sqlx::query(SOURCES).fetch_all(connection).await.map_err(of)?;
    Ok(rows.iter().filter_map(|row| crate::store::query::source!(row)).collect())
}

pub(super) async fn tell(
    connection: &mut SqliteConnection,
    source: SourceId,
    state: &SourceState,
) -> Result<()> {
    let sql = "UPDATE sources SET state = $2, detail = $3, state_since = $4 WHERE id = $1";
    let query = sqlx::query(sql).bind(source.0).bind(&state.name).bind(&state.detail);
    query.bind(state.since.map(Time::micros)).execute(connection).await.map(drop).map_err(of)
}

pub(super) async fn forget(
    connection: &mut SqliteConnection,
    now: Time,
    source: SourceId,
) -> Result<()> {
    let sql = "DELETE FROM pollers WHERE source_id = $1";
    sqlx::query(sql).bind(source.0).execute(&mut *connection).await.map_err(of)?;
    let sql = "UPDATE sources SET forgotten_at = $2, account = NULL, state = '', detail = '',
                      state_since = NULL WHERE id = $1";
    let query = sqlx::query(sql).bind(source.0).bind(now.micros());
    query.execute(connection).await.map(drop).map_err(of)
}

pub(super) async fn quarantine(
    connection: &mut SqliteConnection,
    refused: &[Refused],
    limits: QuarantineLimits,
) -> Result<()> {
    for one in refused {
        let sql = "INSERT INTO quarantine (source_id, kind, reason, received_at, peer, headers,
                          body, size) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let query = sqlx::query(sql).bind(one.source.0).bind(one.kind.name()).bind(&one.reason);
        let query = query.bind(one.received_at.micros()).bind(&one.peer).bind(&one.headers);
        let query = query.bind(&one.body[..]).bind(one.size());
        query.execute(&mut *connection).await.map_err(of)?;
    }
    let mut bounds: Vec<(SourceId, &str)> =
        refused.iter().map(|one| (one.source, one.kind.name())).collect();
    bounds.sort_unstable();
    bounds.dedup();
    for (source, kind) in bounds {
        let query = sqlx::query(crate::store::query::EVICT).bind(source.0).bind(kind);
        let query = query.bind(crate::store::bound(limits.rows));
        let query = query.bind(crate::store::bound(limits.bytes));
        query.execute(&mut *connection).await.map_err(of)?;
    }
    Ok(())
}

pub(super) async fn quarantined(
    connection: &mut SqliteConnection,
    source: SourceId,
) -> Result<Vec<Refused>> {
    let sql = crate::store::query::QUARANTINED;
    let rows = sqlx::query(sql).bind(source.0).fetch_all(connection).await.map_err(of)?;
    let refused = |row: &SqliteRow| {
        let kind = QuarantineKind::from_name(row.get(0))?;
        Some(crate::store::query::refused!(row, source, kind))
    };
    Ok(rows.iter().filter_map(refused).collect())
}
