//! Reading by conversation.

use super::{Inbox, StoreError};
use crate::conversation::{ConversationPage, ConversationQuery, TypedQuery};
use crate::event::Page;

impl Inbox {
    /// Reads a page of conversations, the latest first.
    pub async fn conversations(
        &self,
        query: ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        self.store.conversations(query).await
    }

    /// Reads a page of one conversation's events of certain types, oldest first.
    pub async fn typed_events(&self, query: TypedQuery) -> Result<Page, StoreError> {
        self.store.typed_events(query).await
    }
}
