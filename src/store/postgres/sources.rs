//! Sources and quarantine on PostgreSQL.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::session::Failure;
use crate::clock::Time;
use crate::event::SourceId;
use crate::source::{QuarantineKind, QuarantineLimits, Refused, Source, SourceKind, SourceState};
use crate::store::StoreError;
use crate::store::query::{EVICT, QUARANTINED, SOURCES, refused, source};

type Done<T> = std::result::Result<T, Failure>;

pub(super) async fn register(
    connection: &mut PgConnection,
    kind: SourceKind,
    name: &str,
) -> Done<SourceId> {
    let sql = concat!(
        "INSERT INTO sources (kind, name, created_at) VALUES ($1, $2, ",
        super::now!(),
        ") ON CONFLICT (kind, name) DO UPDATE SET forgotten_at = NULL RETURNING id"
    );
    let query = sqlx::query_scalar(sql).bind(kind.name()).bind(name);
    Ok(SourceId(query.fetch_one(connection).await?))
}

pub(super) async fn list(connection: &mut PgConnection) -> Done<Vec<Source>> {
    let rows = sqlx::query(SOURCES).fetch_all(connection).await?;
    Ok(rows.iter().filter_map(|row| source!(row)).collect())
}

pub(super) async fn tell(
    connection: &mut PgConnection,
    source: SourceId,
    state: &SourceState,
) -> Done<()> {
    let sql = "UPDATE sources SET state = $2, detail = $3, state_since = $4 WHERE id = $1";
    let query = sqlx::query(sql).bind(source.0).bind(&state.name).bind(&state.detail);
    query.bind(state.since.map(Time::micros)).execute(connection).await?;
    Ok(())
}

pub(super) async fn forget(connection: &mut PgConnection, source: SourceId) -> Done<()> {
    let sql = "DELETE FROM pollers WHERE source_id = $1";
    sqlx::query(sql).bind(source.0).execute(&mut *connection).await?;
    let sql = concat!(
        "UPDATE sources SET account = NULL, state = '', detail = '', state_since = NULL,
                forgotten_at = ",
        super::now!(),
        " WHERE id = $1"
    );
    sqlx::query(sql).bind(source.0).execute(connection).await?;
    Ok(())
}

pub(super) async fn quarantine(
    connection: &mut PgConnection,
    refused: &[Refused],
    limits: QuarantineLimits,
) -> Done<()> {
    for one in refused {
        let sql = "INSERT INTO quarantine (source_id, kind, reason, received_at, peer, headers,
                          body, size) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let query = sqlx::query(sql).bind(one.source.0).bind(one.kind.name()).bind(&one.reason);
        let query = query.bind(one.received_at.micros()).bind(&one.peer).bind(&one.headers);
        query.bind(&one.body[..]).bind(one.size()).execute(&mut *connection).await?;
    }
    let mut bounds: Vec<(SourceId, &str)> =
        refused.iter().map(|one| (one.source, one.kind.name())).collect();
    bounds.sort_unstable();
    bounds.dedup();
    for (source, kind) in bounds {
        let query = sqlx::query(EVICT).bind(source.0).bind(kind);
        let query = query.bind(crate::store::bound(limits.rows));
        query.bind(crate::store::bound(limits.bytes)).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(super) async fn quarantined(
    connection: &mut PgConnection,
    source: SourceId,
) -> Done<Vec<Refused>> {
    let rows = sqlx::query(QUARANTINED).bind(source.0).fetch_all(connection).await?;
    let read = |row: &PgRow| {
        let kind = QuarantineKind::from_name(row.get(0))?;
        Some(refused!(row, source, kind))
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// Fails unless this server takes writes.
pub(super) async fn writable(connection: &mut PgConnection) -> Done<()> {
    let sql = "SELECT current_setting('transaction_read_only')";
    let read_only: String = sqlx::query_scalar(sql).fetch_one(connection).await?;
    if read_only == "off" {
        return Ok(());
    }
    Err(StoreError::Unavailable("PostgreSQL takes no writes now".to_owned()).into())
}

/// What a failover would cost.
pub(super) async fn notes(connection: &mut PgConnection) -> Done<Vec<String>> {
    let sql = "SELECT current_setting('synchronous_standby_names')";
    let standbys: String = sqlx::query_scalar(sql).fetch_one(connection).await?;
    if !standbys.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![
        "PostgreSQL has no synchronous standby: a failover to another server can lose what was \
         acknowledged last; set synchronous_standby_names if that matters"
            .to_owned(),
    ])
}
