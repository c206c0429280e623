//! What workers did outside, recorded around the act.

use super::{Inbox, StoreError};
use crate::effect::{Begun, EffectPage, EffectQuery, Key, Token};
use crate::work::Receipt;

impl Inbox {
    /// Records that whoever holds `receipt` is about to act, unless the key says otherwise.
    pub async fn begin_effect(
        &self,
        consumer: &str,
        key: Key,
        receipt: Receipt,
    ) -> Result<Begun, StoreError> {
        let _turn = self.turn().await;
        self.store.begin_effect(consumer, key, receipt).await
    }

    /// Records that it has happened, with `result`, JSON text; tells whether `token` may say so.
    pub async fn finish_effect(
        &self,
        consumer: &str,
        key: Key,
        token: Token,
        result: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let _turn = self.turn().await;
        self.store.finish_effect(consumer, key, token, result).await
    }

    /// Records that it is known not to have happened; tells whether `token` may say so.
    pub async fn abandon_effect(
        &self,
        consumer: &str,
        key: Key,
        token: Token,
    ) -> Result<bool, StoreError> {
        let _turn = self.turn().await;
        self.store.abandon_effect(consumer, key, token).await
    }

    /// A page of a consumer's effects, oldest begun first.
    pub async fn effects(
        &self,
        consumer: &str,
        query: EffectQuery,
    ) -> Result<EffectPage, StoreError> {
        self.store.effects(consumer, query).await
    }
}
