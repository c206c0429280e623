//! What workers did outside, recorded around the act: on PostgreSQL.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use super::session::Failure;
use super::work::settings;
use super::{PostgresStore, transaction};
use crate::effect::{Begun, EffectPage, EffectQuery, Key, State, Token};
use crate::store::effects::{self as shared, Row, effect, effect_row};
use crate::store::{Effects, Result};
use crate::work::Receipt;

type Done<T> = std::result::Result<T, Failure>;

#[async_trait]
impl Effects for PostgresStore {
    async fn begin_effect(&self, consumer: &str, key: Key, receipt: Receipt) -> Result<Begun> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, key), |connection| begin(
            connection, &consumer, &key, receipt
        ))
    }

    async fn finish_effect(
        &self,
        consumer: &str,
        key: Key,
        token: Token,
        result: Option<Vec<u8>>,
    ) -> Result<bool> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, key, result), |connection| finish(
            connection, &consumer, &key, token, &result
        ))
    }

    async fn abandon_effect(&self, consumer: &str, key: Key, token: Token) -> Result<bool> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, key), |connection| abandon(
            connection, &consumer, &key, token
        ))
    }

    async fn effects(&self, consumer: &str, query: EffectQuery) -> Result<EffectPage> {
        let consumer = consumer.to_owned();
        transaction!(self, (consumer, query), |connection| list(connection, &consumer, &query))
    }
}

async fn begin(
    connection: &mut PgConnection,
    consumer: &str,
    key: &Key,
    receipt: Receipt,
) -> Done<Begun> {
    let settings = settings(connection, consumer).await?;
    let (hash, asker) = (&key.hash()[..], &receipt.token[..]);
    // Shared, so that the work is not given to another before this is committed.
    let sql = "SELECT event_seq FROM work
               WHERE consumer_id = $1 AND event_seq = $2 AND receipt = $3 AND state = 1 FOR SHARE";
    let query = sqlx::query(sql).bind(settings.id).bind(receipt.sequence).bind(asker);
    if query.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(Begun::Stale);
    }
    let row: Row = loop {
        let token = Token::fresh();
        let query = sqlx::query(shared::BEGIN).bind(settings.id).bind(hash).bind(key.as_str());
        let query = query.bind(receipt.sequence).bind(asker).bind(&token.0[..]);
        let begun = query.bind(settings.now.micros()).execute(&mut *connection).await?;
        if begun.rows_affected() == 1 {
            return Ok(Begun::Begun(token));
        }
        let sql = "SELECT event_seq, receipt, token, state, begun_at, result FROM effects
                   WHERE consumer_id = $1 AND key_hash = $2 FOR UPDATE";
        let query = sqlx::query(sql).bind(settings.id).bind(hash);
        // None if it was abandoned in between: then it can be begun.
        if let Some(row) = query.fetch_optional(&mut *connection).await? {
            break effect_row!(row);
        }
    };
    let query = sqlx::query_scalar(shared::HOLDS).bind(settings.id).bind(row.event);
    let query = query.bind(&row.receipt).bind(settings.now.micros());
    let holds: i64 = query.fetch_one(&mut *connection).await?;
    let told = row.tell(receipt, holds > 0);
    if let Begun::InDoubt { token, .. } = &told {
        let query = sqlx::query(shared::DOUBT).bind(settings.id).bind(hash);
        query.bind(&token.0[..]).bind(b"".as_slice()).execute(connection).await?;
    }
    Ok(told)
}

async fn finish(
    connection: &mut PgConnection,
    consumer: &str,
    key: &Key,
    token: Token,
    result: &Option<Vec<u8>>,
) -> Done<bool> {
    let settings = settings(connection, consumer).await?;
    let (hash, token) = (&key.hash()[..], &token.0[..]);
    let query = sqlx::query(shared::FINISH).bind(settings.id).bind(hash).bind(token);
    let query = query.bind(result).bind(settings.now.micros());
    if query.execute(&mut *connection).await?.rows_affected() == 1 {
        return Ok(true);
    }
    let query = sqlx::query_scalar(shared::RESULT).bind(settings.id).bind(hash).bind(token);
    let recorded: Option<Option<Vec<u8>>> = query.fetch_optional(connection).await?;
    Ok(recorded.as_ref() == Some(result))
}

async fn abandon(
    connection: &mut PgConnection,
    consumer: &str,
    key: &Key,
    token: Token,
) -> Done<bool> {
    let settings = settings(connection, consumer).await?;
    let query = sqlx::query(shared::ABANDON).bind(settings.id).bind(&key.hash()[..]);
    let removed = query.bind(&token.0[..]).execute(connection).await?;
    Ok(removed.rows_affected() == 1)
}

async fn list(
    connection: &mut PgConnection,
    consumer: &str,
    query: &EffectQuery,
) -> Done<EffectPage> {
    let settings = settings(connection, consumer).await?;
    let (begun_at, hash, limit) = shared::bounds(query);
    let mut effects = Vec::new();
    if query.state != Some(State::Finished) {
        let held = query.state.map(|state| i64::from(state == State::Running));
        let rows = sqlx::query(shared::UNFINISHED).bind(settings.id).bind(begun_at).bind(&hash);
        let rows = rows.bind(limit).bind(settings.now.micros()).bind(held);
        let rows = rows.fetch_all(&mut *connection).await?;
        let unfinished = |row: &PgRow| {
            let held = row.get::<i64, _>(4) > 0;
            effect!(row, if held { State::Running } else { State::InDoubt })
        };
        effects.extend(rows.iter().filter_map(unfinished));
    }
    if matches!(query.state, None | Some(State::Finished)) {
        let rows = sqlx::query(shared::FINISHED).bind(settings.id).bind(begun_at).bind(&hash);
        let rows = rows.bind(limit).fetch_all(&mut *connection).await?;
        effects.extend(rows.iter().filter_map(|row| effect!(row, State::Finished)));
    }
    Ok(shared::page(effects, query))
}
