//! What workers did outside, recorded around the act: on SQLite.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::SqliteStore;
use super::error::of;
use super::work::settings;
use crate::clock::Time;
use crate::effect::{Begun, EffectPage, EffectQuery, Key, State, Token};
use crate::store::effects::{self as shared, Row, effect, effect_row};
use crate::store::{Effects, Result};
use crate::work::Receipt;

#[async_trait]
impl Effects for SqliteStore {
    async fn begin_effect(&self, consumer: &str, key: Key, receipt: Receipt) -> Result<Begun> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(async move { begin(connection, now, &consumer, &key, receipt).await })
            })
            .await
    }

    async fn finish_effect(
        &self,
        consumer: &str,
        key: Key,
        token: Token,
        result: Option<Vec<u8>>,
    ) -> Result<bool> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, now| {
                Box::pin(
                    async move { finish(connection, now, &consumer, &key, token, result).await },
                )
            })
            .await
    }

    async fn abandon_effect(&self, consumer: &str, key: Key, token: Token) -> Result<bool> {
        let consumer = consumer.to_owned();
        self.writer
            .run(move |connection, _| {
                Box::pin(async move { abandon(connection, &consumer, &key, token).await })
            })
            .await
    }

    async fn effects(&self, consumer: &str, query: EffectQuery) -> Result<EffectPage> {
        let mut connection = self.reader().await?;
        list(&mut connection, self.clock.now(), consumer, &query).await
    }
}

async fn begin(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    key: &Key,
    receipt: Receipt,
) -> Result<Begun> {
    let consumer = settings(connection, consumer).await?.id;
    let (hash, asker) = (&key.hash()[..], &receipt.token[..]);
    let sql = "SELECT event_seq FROM work
               WHERE consumer_id = $1 AND event_seq = $2 AND receipt = $3 AND state = 1";
    let query = sqlx::query(sql).bind(consumer).bind(receipt.sequence).bind(asker);
    if query.fetch_optional(&mut *connection).await.map_err(of)?.is_none() {
        return Ok(Begun::Stale);
    }
    let token = Token::fresh();
    let query = sqlx::query(shared::BEGIN).bind(consumer).bind(hash).bind(key.as_str());
    let query = query.bind(receipt.sequence).bind(asker).bind(&token.0[..]).bind(now.micros());
    if query.execute(&mut *connection).await.map_err(of)?.rows_affected() == 1 {
        return Ok(Begun::Begun(token));
    }
    let sql = "SELECT event_seq, receipt, token, state, begun_at, result FROM effects
               WHERE consumer_id = $1 AND key_hash = $2";
    let query = sqlx::query(sql).bind(consumer).bind(hash);
    let row = query.fetch_one(&mut *connection).await.map_err(of)?;
    let row: Row = effect_row!(row);
    let query = sqlx::query_scalar(shared::HOLDS).bind(consumer).bind(row.event);
    let query = query.bind(&row.receipt).bind(now.micros());
    let holds: i64 = query.fetch_one(&mut *connection).await.map_err(of)?;
    let told = row.tell(receipt, holds > 0);
    if let Begun::InDoubt { token, .. } = &told {
        let query = sqlx::query(shared::DOUBT).bind(consumer).bind(hash);
        let query = query.bind(&token.0[..]).bind(b"".as_slice());
        query.execute(connection).await.map_err(of)?;
    }
    Ok(told)
}

async fn finish(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    key: &Key,
    token: Token,
    result: Option<Vec<u8>>,
) -> Result<bool> {
    let consumer = settings(connection, consumer).await?.id;
    let (hash, token) = (&key.hash()[..], &token.0[..]);
    let query = sqlx::query(shared::FINISH).bind(consumer).bind(hash).bind(token);
    let query = query.bind(&result).bind(now.micros());
    if query.execute(&mut *connection).await.map_err(of)?.rows_affected() == 1 {
        return Ok(true);
    }
    let query = sqlx::query_scalar(shared::RESULT).bind(consumer).bind(hash).bind(token);
    let recorded: Option<Option<Vec<u8>>> = query.fetch_optional(connection).await.map_err(of)?;
    Ok(recorded == Some(result))
}

async fn abandon(
    connection: &mut SqliteConnection,
    consumer: &str,
    key: &Key,
    token: Token,
) -> Result<bool> {
    let consumer = settings(connection, consumer).await?.id;
    let query = sqlx::query(shared::ABANDON).bind(consumer).bind(&key.hash()[..]);
    let removed = query.bind(&token.0[..]).execute(connection).await.map_err(of)?;
    Ok(removed.rows_affected() == 1)
}

async fn list(
    connection: &mut SqliteConnection,
    now: Time,
    consumer: &str,
    query: &EffectQuery,
) -> Result<EffectPage> {
    let consumer = settings(connection, consumer).await?.id;
    let (begun_at, hash, limit) = shared::bounds(query);
    let mut effects = Vec::new();
    if query.state != Some(State::Finished) {
        let held = query.state.map(|state| i64::from(state == State::Running));
        let rows = sqlx::query(shared::UNFINISHED).bind(consumer).bind(begun_at).bind(&hash);
        let rows = rows.bind(limit).bind(now.micros()).bind(held);
        let rows = rows.fetch_all(&mut *connection).await.map_err(of)?;
        let unfinished = |row: &SqliteRow| {
            let held = row.get::<i64, _>(4) > 0;
            effect!(row, if held { State::Running } else { State::InDoubt })
        };
        effects.extend(rows.iter().filter_map(unfinished));
    }
    if matches!(query.state, None | Some(State::Finished)) {
        let rows = sqlx::query(shared::FINISHED).bind(consumer).bind(begun_at).bind(&hash);
        let rows = rows.bind(limit).fetch_all(&mut *connection).await.map_err(of)?;
        effects.extend(rows.iter().filter_map(|row| effect!(row, State::Finished)));
    }
    Ok(shared::page(effects, query))
}
