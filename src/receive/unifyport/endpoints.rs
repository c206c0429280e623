//! The endpoints of now: replaced as a whole when the configuration changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::health::{self, Health};
use crate::clock::Clock;
use crate::config::{Stale, Unifyport};
use crate::http::problem::{Refusal, Unavailable};
use crate::inbox::{Inbox, StoreError};
use crate::source::{SourceKind, SourceState};

/// How long the store's list of once configured endpoints is good for: somebody who calls paths
/// that do not exist must not read the store with each call.
const LIST_AGE: Duration = Duration::from_secs(1);

/// All endpoints.
#[derive(Debug, Default)]
pub struct Endpoints {
    active: RwLock<HashMap<String, Arc<Active>>>,
    /// Names that the store knows, and when it said so.
    known: Mutex<Option<(Instant, Arc<[String]>)>>,
}

/// A configured endpoint with its health.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) endpoint: Endpoint,
    pub(super) health: Arc<Health>,
}

impl Endpoints {
    /// From now on these are the endpoints. Each is made known to the store first, so that after a
    /// failure all are as before.
    pub async fn replace(
        &self,
        configured: &[Unifyport],
        identity_retention: Duration,
        inbox: &Inbox,
        clock: &Clock,
    ) -> Result<(), StoreError> {
        let mut next = HashMap::new();
        for one in configured {
            let source = inbox.register_source(SourceKind::UnifyPort, &one.name).await?;
            let health = self.get(&one.name).map(|active| active.health.clone());
            if health.is_none() {
                inbox.tell_source(source, health::waiting(clock)).await?;
            }
            let endpoint = Endpoint {
                name: one.name.clone(),
                source,
                secrets: one.secrets.clone(),
                tolerance: one.tolerance,
                accept_stale: (one.stale == Stale::Accept).then_some(identity_retention),
            };
            let active = Active { endpoint, health: health.unwrap_or_default() };
            next.insert(one.name.clone(), Arc::new(active));
        }
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    fn get(&self, name: &str) -> Option<Arc<Active>> {
        self.active.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The endpoint of that name, or why there is none. One that the store knows is missing by our
    /// fault, perhaps, and so is one while the store cannot be asked: 503.
    pub(super) async fn find(&self, name: &str, inbox: &Inbox) -> Result<Arc<Active>, Refusal> {
        if let Some(active) = self.get(name) {
            return Ok(active);
        }
        match self.known(inbox).await {
            Ok(known) if known.iter().any(|known| known == name) => {
                Err(Refusal::Unavailable(Unavailable::EndpointNotConfigured))
            }
            Ok(_) => Err(Refusal::NotFound),
            Err(_) => Err(Refusal::Unavailable(Unavailable::Store)),
        }
    }

    async fn known(&self, inbox: &Inbox) -> Result<Arc<[String]>, StoreError> {
        let kept = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, known)) = kept
            && at.elapsed() < LIST_AGE
        {
            return Ok(known);
        }
        let sources = inbox.sources().await?;
        let endpoints = sources.into_iter().filter(|one| one.kind == SourceKind::UnifyPort);
        let known: Arc<[String]> = endpoints.map(|source| source.name).collect();
        let mut kept = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((Instant::now(), known.clone()));
        Ok(known)
    }

    /// Keeps what an endpoint says of itself, beside the answer and without waiting.
    pub(super) fn tell(&self, inbox: &Arc<Inbox>, endpoint: &Endpoint, state: Option<SourceState>) {
        let Some(state) = state else { return };
        let (inbox, source) = (inbox.clone(), endpoint.source);
        tokio::spawn(async move {
            if let Err(error) = inbox.tell_source(source, state).await {
                tracing::debug!("the state of an endpoint was not kept: {error}");
            }
        });
    }
}
