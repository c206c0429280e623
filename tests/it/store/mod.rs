//! What both stores must do: one suite, run on each.

mod ack;
mod append;
mod attempts;
mod cancel;
mod claim;
mod clock;
mod consumer;
mod conversations;
mod crowd;
mod dead;
mod durability;
mod effects;
mod extend;
mod filling;
pub(crate) mod fixture;
mod generic_plan;
mod identity;
mod lease;
mod model;
mod plan;
mod poller;
mod property;
mod quarantine;
mod race;
mod raw;
mod read;
mod removal;
mod removed;
mod replay;
mod replay_choice;
mod replay_whole;
mod retention;
mod sample;
mod schema;
mod source;
mod standing;

/// Makes a test of each case, an async function that takes `&mut Fixture`, for each store.
macro_rules! conformance {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let mut fixture = crate::store::fixture::Fixture::sqlite().await;
                super::$case(&mut fixture).await;
                fixture.finish().await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let mut fixture = crate::store::fixture::Fixture::postgres().await;
                super::$case(&mut fixture).await;
                fixture.finish().await;
            })+
        }
    };
}
use conformance;
