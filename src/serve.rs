//! The gateway: receivers, the inbox and the private API in one process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{self, Config, Role};
use crate::http::bearer::{self, Access, SharedAccess, authenticate};
use crate::http::body::{BodyBudget, BodyLimits};
use crate::http::problem::with_problem_fallbacks;
use crate::http::server::{Limits, serve};
use crate::inbox::{Ages, Bounds, Inbox};
use crate::receive::telegram::{Pace, Pollers};
use crate::receive::unifyport::{self, Endpoints, Receiver};
use crate::shutdown::Shutdown;
use crate::source::QuarantineLimits;
use crate::store::{self, Options, Store};
use crate::work::{Consumer, Filter, Ordering};
use crate::{deliver, operate};

/// A client that takes nothing of its answer for so long has gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The two listeners, bound.
#[derive(Debug)]
pub struct Listeners {
    /// For webhooks.
    pub public: TcpListener,
    /// For workers and operators.
    pub private: TcpListener,
}

impl Listeners {
    /// Binds both.
    ///
    /// # Errors
    /// An address cannot be bound, said with the address and the key that sets it.
    pub async fn bind(server: &config::Server) -> anyhow::Result<Listeners> {
        let public = bind("public", server.public).await?;
        let private = bind("private", server.private).await?;
        Ok(Listeners { public, private })
    }
}

async fn bind(key: &str, address: std::net::SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        anyhow::anyhow!(
            "cannot listen on {address} ({error}): end what listens there, or set another address \
             as server.{key}"
        )
    })
}

/// Runs the gateway until `shutdown` is soft, then drains it.
///
/// The newest value of `config` counts: from a later one, secrets, tolerances, endpoints, consumers
/// and tokens are taken over without dropping a request; what only a start can change stays.
///
/// # Errors
/// There is nothing to receive, the store cannot be opened, or a task died.
pub async fn run(
    mut config: watch::Receiver<Arc<Config>>,
    listeners: Listeners,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let first = config.borrow_and_update().clone();
    let store = open(&first, true).await?;
    let outcome = with_store(first, config, listeners, store.clone(), &shutdown).await;
    if outcome.is_err() {
        shutdown.trigger_soft();
    }
    let grace = Duration::from_secs(5);
    let finished = shutdown.finished(grace).await;
    // A store that hangs must not hold up the end.
    let _ = tokio::time::timeout(grace, store.close()).await;
    outcome.and(finished)
}

/// Opens the store that `config` names.
///
/// # Errors
/// The store's own word, said with the URL.
pub async fn open(config: &Config, migrate: bool) -> anyhow::Result<Arc<dyn Store>> {
    let options = Options {
        migrate,
        allow_unsafe_durability: config.store.allow_unsafe_durability,
        clock: Clock::wall(),
    };
    let url = match config.store.url.database() {
        config::Database::Sqlite(path) => format!("sqlite:{}", path.display()),
        config::Database::Postgres(url) => url.to_owned(),
    };
    let opened = store::open(&url, options).await;
    opened.with_context(|| format!("cannot open the store {}", config.store.url.display()))
}

async fn with_store(
    first: Arc<Config>,
    config: watch::Receiver<Arc<Config>>,
    listeners: Listeners,
    store: Arc<dyn Store>,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let bounds = Bounds {
        queue_bytes: first.server.max_bodies,
        quarantine: QuarantineLimits { rows: first.quarantine.rows, bytes: first.quarantine.bytes },
    };
    let inbox = Inbox::start(store.clone(), bounds, shutdown);
    inbox.remove_when_old(Ages {
        retention: first.store.retention,
        identity_retention: first.store.identity_retention,
    });
    let live = Live {
        inbox: inbox.clone(),
        endpoints: Arc::default(),
        pollers: Pollers::new(shutdown.clone(), Clock::wall(), Pace::default()),
        access: SharedAccess::default(),
        clock: Clock::wall(),
    };
    live.apply(&first).await?;
    inbox.keep_consumers(Clock::wall());
    let server = &first.server;
    let limits = BodyLimits {
        max_body: server.max_body as u64,
        body_timeout: server.body_timeout,
        budget: BodyBudget::new(server.max_bodies as u64),
    };
    let receiver = Receiver {
        inbox: inbox.clone(),
        endpoints: live.endpoints.clone(),
        limits: limits.clone(),
        answer_timeout: server.answer_timeout,
        clock: Clock::wall(),
    };
    let public = with_problem_fallbacks(unifyport::routes(receiver).merge(operate::public()));
    let private = private(inbox, limits, live.access.clone(), shutdown);
    tracing::info!(
        public = %listeners.public.local_addr()?,
        private = %listeners.private.local_addr()?,
        bots = first.telegram.len(),
        endpoints = first.unifyport.len(),
        tokens = first.tokens.len(),
        "listening"
    );
    let address = listeners.private.local_addr()?;
    let limits = Limits {
        header_timeout: server.header_timeout,
        write_timeout: WRITE_TIMEOUT,
        max_connections: server.max_connections,
        shutdown_grace: server.shutdown_grace,
    };
    let (follow, watching) = (follow(live, first.clone(), config, address), shutdown.clone());
    shutdown.spawn_supervised("the configuration", async move {
        tokio::select! {
            () = follow => {}
            () = watching.soft() => {}
        }
        Ok(())
    });
    let (dead, watching) = (store.clone(), shutdown.clone());
    shutdown.spawn_supervised("the store's watch", async move {
        tokio::select! {
            () = dead.failed() => anyhow::bail!("the store's task died"),
            () = watching.soft() => Ok(()),
        }
    });
    let (served, inside) = tokio::join!(
        serve(listeners.public, public, limits.clone(), shutdown.clone()),
        serve(listeners.private, private, limits, shutdown.clone()),
    );
    served.and(inside)
}

/// The private listener's router.
fn private(
    inbox: Arc<Inbox>,
    limits: BodyLimits,
    access: SharedAccess,
    shutdown: &Shutdown,
) -> Router {
    let health = operate::Health { inbox: inbox.clone(), shutdown: shutdown.clone() };
    let api = deliver::routes(deliver::Api { inbox: inbox.clone(), limits });
    let all = api.merge(operate::routes(inbox)).merge(operate::private(health));
    with_problem_fallbacks(all).layer(from_fn_with_state(access, authenticate))
}

/// What a new configuration changes while the gateway runs.
struct Live {
    inbox: Arc<Inbox>,
    endpoints: Arc<Endpoints>,
    pollers: Pollers,
    access: SharedAccess,
    clock: Clock,
}

impl Live {
    async fn apply(&self, config: &Config) -> anyhow::Result<()> {
        self.inbox.put_consumers(config.consumers.iter().map(consumer).collect()).await?;
        let retention = config.store.identity_retention;
        let endpoints = &config.unifyport;
        self.endpoints.replace(endpoints, retention, &self.inbox, &self.clock).await?;
        self.pollers.replace(&config.telegram, &self.inbox).await?;
        self.access.replace(access(config));
        Ok(())
    }
}

/// Applies later configurations as they come.
async fn follow(
    live: Live,
    mut current: Arc<Config>,
    mut config: watch::Receiver<Arc<Config>>,
    private: std::net::SocketAddr,
) {
    while config.changed().await.is_ok() {
        let next = config.borrow_and_update().clone();
        if next.tokens.is_empty() && !private.ip().to_canonical().is_loopback() {
            tracing::error!(
                "the new configuration has no token, and the private listener {private} is not a \
                 loopback address: nothing is changed"
            );
            continue;
        }
        match live.apply(&next).await {
            Ok(()) => {
                if needs_restart(&current, &next) {
                    tracing::warn!(
                        "the new configuration also changes [server], [store] or [quarantine]: \
                         restart to apply that"
                    );
                }
                tracing::info!("the new configuration is in force");
                current = next;
            }
            Err(error) => tracing::error!(
                "the new configuration is not in force, since the store failed: {error}; send \
                 SIGHUP again"
            ),
        }
    }
    std::future::pending().await
}

/// Whether `next` differs from `current` in what only a start can change.
fn needs_restart(current: &Config, next: &Config) -> bool {
    current.server != next.server
        || current.store != next.store
        || current.quarantine != next.quarantine
}

fn access(config: &Config) -> Access {
    let token = |token: &config::Token| {
        let role = match &token.role {
            Role::Operator => bearer::Role::Operator,
            Role::Worker { consumers } => {
                bearer::Role::Worker { consumers: consumers.clone().map(Into::into) }
            }
        };
        bearer::Token::new(&token.name, token.value.expose().as_bytes(), role)
    };
    Access { tokens: config.tokens.iter().map(token).collect() }
}

/// The consumer that these settings make.
pub(crate) fn consumer(configured: &config::Consumer) -> Consumer {
    Consumer {
        name: configured.name.clone(),
        ordering: match configured.ordering {
            config::Ordering::Conversation => Ordering::Conversation,
            config::Ordering::None => Ordering::None,
        },
        lease: configured.lease,
        max_attempts: i64::from(configured.max_attempts),
        backoff_first: configured.backoff.first,
        backoff_max: configured.backoff.max,
        filter: Filter {
            channels: configured.filter.channels.clone(),
            sources: configured.filter.sources.clone(),
            types: configured.filter.types.clone(),
        },
    }
}
