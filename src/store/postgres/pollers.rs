//! Pollers on PostgreSQL: accounts, leases, checkpoints and possible losses.

use std::time::Duration;

use sqlx::{PgConnection, Row};

use super::session::Failure;
use crate::clock::{Time, micros};
use crate::event::SourceId;
use crate::source::{Bound, Gap, Leased, Poller, PollerLease};
use crate::store::query::{GAPS, gap};
use crate::store::{Checkpoint, StoreError};

type Done<T> = std::result::Result<T, Failure>;

pub(super) async fn bind(
    connection: &mut PgConnection,
    source: SourceId,
    account: &str,
) -> Done<Bound> {
    // Two names bound at once to one id must not both find it free.
    let sql =
        "SELECT id, name, account FROM sources WHERE kind = 'telegram' ORDER BY id FOR UPDATE";
    for row in sqlx::query(sql).fetch_all(&mut *connection).await? {
        let known: Option<String> = row.get(2);
        match (row.get::<i64, _>(0) == source.0, known) {
            (true, Some(known)) if known != account => return Ok(Bound::OtherAccount(known)),
            (false, Some(known)) if known == account => return Ok(Bound::OtherName(row.get(1))),
            _ => {}
        }
    }
    let sql = "UPDATE sources SET account = $2 WHERE id = $1 AND account IS NULL";
    sqlx::query(sql).bind(source.0).bind(account).execute(connection).await?;
    Ok(Bound::Same)
}

pub(super) async fn lease(
    connection: &mut PgConnection,
    source: SourceId,
    holder: &str,
    ttl: Duration,
) -> Done<Leased> {
    let token: [u8; 16] = rand::random();
    let sql = concat!(
        "INSERT INTO pollers AS p (source_id, lease_token, lease_holder, lease_until)
         VALUES ($1, $2, $3, $4 + ",
        super::now!(),
        ") ON CONFLICT (source_id) DO UPDATE SET lease_token = excluded.lease_token,
            lease_holder = excluded.lease_holder, lease_until = excluded.lease_until
            WHERE p.lease_until IS NULL OR p.lease_until <= ",
        super::now!(),
        " RETURNING next_offset, last_ok_at, pending"
    );
    let query = sqlx::query(sql).bind(source.0).bind(&token[..]).bind(holder).bind(micros(ttl));
    let Some(row) = query.fetch_optional(&mut *connection).await? else {
        let sql = "SELECT lease_holder FROM pollers WHERE source_id = $1";
        let other = sqlx::query_scalar(sql).bind(source.0).fetch_optional(connection).await?;
        return Ok(Leased::Held { holder: other.flatten() });
    };
    let poller = Poller {
        next_offset: row.get(0),
        last_ok_at: row.get::<Option<i64>, _>(1).map(Time::from_micros),
        pending: row.get(2),
        holder: Some(holder.to_owned()),
    };
    Ok(Leased::Mine(PollerLease { token, poller }))
}

/// Moves a poller's place if it still holds the lease; the row stays locked to the end of the
/// transaction, so that nobody takes the lease over in the middle of a batch.
pub(super) async fn checkpoint(connection: &mut PgConnection, checkpoint: &Checkpoint) -> Done<()> {
    let sql = concat!(
        "UPDATE pollers SET next_offset = coalesce($3, next_offset),
             committed_at = CASE WHEN $3::bigint IS NULL THEN committed_at ELSE ",
        super::now!(),
        " END, last_ok_at = coalesce($4, last_ok_at), pending = coalesce($5, pending)
         WHERE source_id = $1 AND lease_token = $2"
    );
    let query = sqlx::query(sql).bind(checkpoint.source.0).bind(&checkpoint.lease[..]);
    let query = query.bind(checkpoint.next_offset).bind(checkpoint.ok_at.map(Time::micros));
    let moved = query.bind(checkpoint.pending).execute(&mut *connection).await?.rows_affected();
    if moved != 1 {
        return Err(StoreError::LeaseLost.into());
    }
    for gap in &checkpoint.gaps {
        let sql = "INSERT INTO gaps (source_id, reason, from_id, to_id, from_at, to_at, detail)
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let query = sqlx::query(sql).bind(checkpoint.source.0).bind(gap.reason.name());
        let query = query.bind(gap.ids.map(|ids| ids.0)).bind(gap.ids.map(|ids| ids.1));
        let query = query.bind(gap.from.map(Time::micros)).bind(gap.to.micros());
        query.bind(&gap.detail).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(super) async fn renew(
    connection: &mut PgConnection,
    of: &Checkpoint,
    ttl: Duration,
) -> Done<()> {
    checkpoint(connection, of).await?;
    let sql =
        concat!("UPDATE pollers SET lease_until = $2 + ", super::now!(), " WHERE source_id = $1");
    sqlx::query(sql).bind(of.source.0).bind(micros(ttl)).execute(connection).await?;
    Ok(())
}

pub(super) async fn release(
    connection: &mut PgConnection,
    source: SourceId,
    lease: [u8; 16],
) -> Done<()> {
    let sql = "UPDATE pollers SET lease_token = NULL, lease_holder = NULL, lease_until = NULL
               WHERE source_id = $1 AND lease_token = $2";
    sqlx::query(sql).bind(source.0).bind(&lease[..]).execute(connection).await?;
    Ok(())
}

pub(super) async fn known(
    connection: &mut PgConnection,
    source: SourceId,
    keys: &[Vec<u8>],
) -> Done<Vec<bool>> {
    let sql = "SELECT EXISTS (SELECT 1 FROM identities WHERE source_id = $1 AND key = k.key)
               FROM unnest($2::bytea[]) WITH ORDINALITY AS k (key, place) ORDER BY k.place";
    Ok(sqlx::query_scalar(sql).bind(source.0).bind(keys).fetch_all(connection).await?)
}

pub(super) async fn gaps(
    connection: &mut PgConnection,
    source: Option<&str>,
    limit: usize,
) -> Done<Vec<Gap>> {
    let query = sqlx::query(GAPS).bind(source).bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = query.fetch_all(connection).await?;
    Ok(rows.iter().filter_map(|row| gap!(row)).collect())
}

pub(super) async fn acknowledge(connection: &mut PgConnection, ids: Option<&[i64]>) -> Done<u64> {
    let sql = concat!(
        "UPDATE gaps SET acknowledged_at = ",
        super::now!(),
        " WHERE acknowledged_at IS NULL AND ($1::bigint[] IS NULL OR id = ANY ($1))"
    );
    Ok(sqlx::query(sql).bind(ids).execute(connection).await?.rows_affected())
}
