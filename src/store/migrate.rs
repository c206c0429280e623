//! Bringing a schema up to date, or refusing one that is not.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use super::{Result, StoreError};

/// Another process may be applying the same migrations where the database has no lock for that;
/// after its commit there is nothing left to do, so a few tries are enough.
const TRIES: usize = 10;
const TABLE: &str = "_sqlx_migrations";

/// Applies what is missing; with `apply` false, only looks and refuses a schema that lacks any.
pub(super) async fn bring_up<C: Migrate + Send>(
    migrations: &Migrator,
    connection: &mut C,
    apply: bool,
) -> Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        let outcome = once(migrations, connection, apply).await;
        match outcome {
            Err(StoreError::Unavailable(_)) if apply && tries < TRIES => {}
            outcome => return outcome,
        }
    }
}

async fn once<C: Migrate + Send>(
    migrations: &Migrator,
    connection: &mut C,
    apply: bool,
) -> Result<()> {
    if !apply {
        let applied = connection.list_applied_migrations(TABLE).await;
        let applied = applied.map_err(|_| lacking())?;
        refuse_newer(migrations, applied.iter().map(|migration| migration.version))?;
        let complete = applied.len() == migrations.iter().count();
        return if complete { Ok(()) } else { Err(lacking()) };
    }
    connection.lock().await.map_err(failed)?;
    let outcome = apply_missing(migrations, connection).await;
    // The lock is the session's: it ends with the connection if this fails.
    let _ = connection.unlock().await;
    outcome
}

async fn apply_missing<C: Migrate + Send>(migrations: &Migrator, connection: &mut C) -> Result<()> {
    connection.ensure_migrations_table(TABLE).await.map_err(failed)?;
    let applied = connection.list_applied_migrations(TABLE).await.map_err(failed)?;
    refuse_newer(migrations, applied.iter().map(|migration| migration.version))?;
    for migration in migrations.iter() {
        match applied.iter().find(|applied| applied.version == migration.version) {
            Some(applied) if applied.checksum != migration.checksum => {
                return Err(StoreError::Schema(format!(
                    "the store's schema step {} is not the one this inboxd knows; it was made by \
                     an unreleased build, so point store.url at a new store",
                    migration.version
                )));
            }
            Some(_) => {}
            None => connection.apply(TABLE, migration).await.map(drop).map_err(failed)?,
        }
    }
    Ok(())
}

fn refuse_newer(migrations: &Migrator, applied: impl Iterator<Item = i64>) -> Result<()> {
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or(0);
    match applied.max() {
        Some(version) if version > known => Err(StoreError::Schema(format!(
            "the store has schema version {version}, newer than {known}, the newest that this \
             inboxd knows; run the newer inboxd that made it"
        ))),
        _ => Ok(()),
    }
}

fn lacking() -> StoreError {
    StoreError::Unprepared(
        "the store's schema is missing or not up to date; run `inboxd migrate` first".to_owned(),
    )
}

fn failed(error: MigrateError) -> StoreError {
    StoreError::Unavailable(format!("migrating the store's schema: {error}"))
}
