//! Pollers on SQLite: accounts, leases, checkpoints and possible losses.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sqlx::{Row, SqliteConnection};

use super::error::of;
use crate::clock::Time;
use crate::event::SourceId;
use crate::source::{Bound, Gap, NewGap, Poller, PollerLease};
use crate::store::query::{GAPS, gap};
use crate::store::{Checkpoint, Result, StoreError};

/// The lock files of this process's pollers. The system frees a lock when its process dies, so that
/// another one need not wait.
#[derive(Debug)]
pub(super) struct Locks {
    /// The store's file.
    path: PathBuf,
    held: Mutex<HashMap<SourceId, File>>,
}

impl Locks {
    pub(super) fn new(path: PathBuf) -> Locks {
        Locks { path, held: Mutex::default() }
    }

    /// The lock of a bot's poller, free again when it is dropped; none if somebody has it.
    pub(super) fn take(&self, source: SourceId) -> Result<Option<File>> {
        let mut path = self.path.clone().into_os_string();
        path.push(format!("-poller-{}.lock", source.0));
        let failed = |error| {
            StoreError::Unavailable(format!("the lock file of a poller beside the store: {error}"))
        };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Keeps the lock until it is freed.
    pub(super) fn keep(&self, source: SourceId, lock: File) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(source, lock);
    }

    /// Frees the lock.
    pub(super) fn free(&self, source: SourceId) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&source);
    }
}

pub(super) async fn bind(
    connection: &mut SqliteConnection,
    source: SourceId,
    account: &str,
) -> Result<Bound> {
    let sql = "SELECT id, name, account FROM sources
               WHERE id = $1 OR (kind = 'telegram' AND account = $2 AND forgotten_at IS NULL)";
    let query = sqlx::query(sql).bind(source.0).bind(account);
    for row in query.fetch_all(&mut *connection).await.map_err(of)? {
        let known: Option<String> = row.get(2);
        if row.get::<i64, _>(0) != source.0 {
            return Ok(Bound::OtherName(row.get(1)));
        }
        match known {
            Some(known) if known != account => return Ok(Bound::OtherAccount(known)),
            _ => {}
        }
    }
    let sql = "UPDATE sources SET account = $2 WHERE id = $1 AND account IS NULL";
    sqlx::query(sql).bind(source.0).bind(account).execute(connection).await.map_err(of)?;
    Ok(Bound::Same)
}

/// Takes the lease for whoever holds the lock file.
pub(super) async fn lease(
    connection: &mut SqliteConnection,
    source: SourceId,
    holder: &str,
    until: Time,
) -> Result<PollerLease> {
    let token: [u8; 16] = rand::random();
    let sql = "INSERT INTO pollers (source_id, lease_token, lease_holder, lease_until)
               VALUES ($1, $2, $3, $4)
               ON CONFLICT DO UPDATE SET lease_token = excluded.lease_token,
                   lease_holder = excluded.lease_holder, lease_until = excluded.lease_until
               RETURNING next_offset, last_ok_at, pending";
    let query = sqlx::query(sql).bind(source.0).bind(&token[..]).bind(holder).bind(until.micros());
    let row = query.fetch_one(connection).await.map_err(of)?;
    let poller = Poller {
        next_offset: row.get(0),
        last_ok_at: row.get::<Option<i64>, _>(1).map(Time::from_micros),
        pending: row.get(2),
        holder: Some(holder.to_owned()),
    };
    Ok(PollerLease { token, poller })
}

pub(super) async fn holder(
    connection: &mut SqliteConnection,
    source: SourceId,
) -> Result<Option<String>> {
    let sql = "SELECT lease_holder FROM pollers WHERE source_id = $1";
    let holder = sqlx::query_scalar(sql).bind(source.0).fetch_optional(connection).await;
    Ok(holder.map_err(of)?.flatten())
}

/// Moves a poller's place if it still holds the lease.
pub(super) async fn checkpoint(
    connection: &mut SqliteConnection,
    now: Time,
    checkpoint: &Checkpoint,
) -> Result<()> {
    let sql = "UPDATE pollers SET next_offset = coalesce($3, next_offset),
                   committed_at = iif($3 IS NULL, committed_at, $4),
                   last_ok_at = coalesce($5, last_ok_at), pending = coalesce($6, pending)
               WHERE source_id = $1 AND lease_token = $2";
    let query = sqlx::query(sql).bind(checkpoint.source.0).bind(&checkpoint.lease[..]);
    let query = query.bind(checkpoint.next_offset).bind(now.micros());
    let query = query.bind(checkpoint.ok_at.map(Time::micros)).bind(checkpoint.pending);
    let moved = query.execute(&mut *connection).await.map_err(of)?.rows_affected();
    if moved != 1 {
        return Err(StoreError::LeaseLost);
    }
    for gap in &checkpoint.gaps {
        insert_gap(connection, checkpoint.source, gap).await?;
    }
    Ok(())
}

async fn insert_gap(
    connection: &mut SqliteConnection,
    source: SourceId,
    gap: &NewGap,
) -> Result<()> {
    let sql = "INSERT INTO gaps (source_id, reason, from_id, to_id, from_at, to_at, detail)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let query = sqlx::query(sql).bind(source.0).bind(gap.reason.name());
    let query = query.bind(gap.ids.map(|ids| ids.0)).bind(gap.ids.map(|ids| ids.1));
    let query = query.bind(gap.from.map(Time::micros)).bind(gap.to.micros()).bind(&gap.detail);
    query.execute(connection).await.map(drop).map_err(of)
}

/// Holds the lease until then.
pub(super) async fn renew(
    connection: &mut SqliteConnection,
    source: SourceId,
    until: Time,
) -> Result<()> {
    let sql = "UPDATE pollers SET lease_until = $2 WHERE source_id = $1";
    let query = sqlx::query(sql).bind(source.0).bind(until.micros());
    query.execute(connection).await.map(drop).map_err(of)
}

pub(super) async fn release(
    connection: &mut SqliteConnection,
    source: SourceId,
    lease: &[u8; 16],
) -> Result<()> {
    let sql = "UPDATE pollers SET lease_token = NULL, lease_holder = NULL, lease_until = NULL
               WHERE source_id = $1 AND lease_token = $2";
    let query = sqlx::query(sql).bind(source.0).bind(&lease[..]);
    query.execute(connection).await.map(drop).map_err(of)
}

pub(super) async fn known(
    connection: &mut SqliteConnection,
    source: SourceId,
    keys: &[Vec<u8>],
) -> Result<Vec<bool>> {
    let mut known = Vec::with_capacity(keys.len());
    for key in keys {
        let sql = "SELECT EXISTS (SELECT 1 FROM identities WHERE source_id = $1 AND key = $2)";
        let query = sqlx::query_scalar(sql).bind(source.0).bind(key);
        known.push(query.fetch_one(&mut *connection).await.map_err(of)?);
    }
    Ok(known)
}

pub(super) async fn gaps(
    connection: &mut SqliteConnection,
    source: Option<&str>,
    limit: usize,
) -> Result<Vec<Gap>> {
    let query = sqlx::query(GAPS).bind(source).bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = query.fetch_all(connection).await.map_err(of)?;
    Ok(rows.iter().filter_map(|row| gap!(row)).collect())
}

pub(super) async fn acknowledge(
    connection: &mut SqliteConnection,
    now: Time,
    ids: Option<Vec<i64>>,
) -> Result<u64> {
    let sql = "UPDATE gaps SET acknowledged_at = $1 WHERE acknowledged_at IS NULL
                   AND ($2 IS NULL OR id IN (SELECT value FROM json_each($2)))";
    let ids = ids.map(|ids| super::json(ids.into_iter()));
    let query = sqlx::query(sql).bind(now.micros()).bind(ids);
    Ok(query.execute(connection).await.map_err(of)?.rows_affected())
}
