//! Sends deliveries, in every API process; `retouch_core::webhooks` makes sure that they share the work.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use retouch_core::db::{self, PgPool};
use retouch_core::webhooks::{self, Lane, Room};
use retouch_core::{UserId, WebhookId};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::attempts::Attempts;
use super::lanes::{Places, places, room};
use crate::state::App;

/// How often to look for deliveries. A place that becomes free is filled at once.
const ROUND: Duration = Duration::from_secs(1);
/// Maximum time for an attempt, from the first packet to the status.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time for the outcome of an attempt, before another process may claim the delivery.
const LEASE: Duration = Duration::from_mins(1);

/// Sends deliveries until the process stops, and then waits for those in flight.
pub async fn run(app: App) {
    run_with(app, TIMEOUT).await;
}

/// The same as [`run`], with another maximum time for an attempt.
pub async fn run_with(app: App, timeout: Duration) {
    let (pool, stop) = (app.pool.clone(), app.stopping.clone());
    let attempts = match Attempts::new(app, timeout) {
        Ok(attempts) => Arc::new(attempts),
        Err(error) => {
            tracing::error!("Cannot deliver to webhooks: {error:#}");
            return;
        }
    };
    let mut flights = Flights::default();
    let mut rounds = tokio::time::interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let lanes = tokio::select! {
            () = stop.cancelled() => break,
            landed = flights.next_landings(), if !flights.is_empty() => landed,
            _ = rounds.tick() => HashSet::from([Lane::Fast, Lane::Slow]),
        };
        for lane in lanes {
            if let Err(error) = flights.fill(lane, &pool, &attempts).await {
                tracing::warn!(%error, "Could not look for deliveries to webhooks; retrying");
            }
        }
    }
    while !flights.is_empty() {
        flights.next_landings().await;
    }
}

/// The attempts in flight.
#[derive(Default)]
struct Flights {
    tasks: JoinSet<()>,
    /// The webhook of each attempt, and its owner.
    destinations: HashMap<tokio::task::Id, (Lane, WebhookId, UserId)>,
}

impl Flights {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Claims as many due deliveries of a lane as there is room for.
    async fn fill(
        &mut self,
        lane: Lane,
        pool: &PgPool,
        attempts: &Arc<Attempts>,
    ) -> Result<(), db::DatabaseError> {
        let taken = self.destinations.values().filter(|(of, ..)| *of == lane).count();
        let free = room(lane, taken, attempts.free_lookups(lane));
        if free == 0 {
            return Ok(());
        }
        let (mut of_webhooks, mut of_owners) = (HashMap::<_, i64>::new(), HashMap::<_, i64>::new());
        for (of, webhook, owner) in self.destinations.values() {
            *of_webhooks.entry(*webhook).or_default() += 1;
            *of_owners.entry(*owner).or_default() += i64::from(*of == lane);
        }
        let of_webhooks: Vec<_> = of_webhooks.into_iter().collect();
        let of_owners: Vec<_> = of_owners.into_iter().collect();
        let Places { per_webhook, per_owner, .. } = places(lane);
        let room = Room {
            free: free as i64,
            per_webhook,
            per_owner,
            of_webhooks: &of_webhooks,
            of_owners: &of_owners,
        };
        let due = db::within(webhooks::claim(pool, lane, room, LEASE)).await?;
        for delivery in due {
            let (webhook, owner) = (delivery.webhook, delivery.owner);
            let attempts = Arc::clone(attempts);
            let task = self.tasks.spawn(async move { attempts.make(lane, &delivery).await });
            self.destinations.insert(task.id(), (lane, webhook, owner));
        }
        Ok(())
    }

    /// Waits until an attempt has ended, and returns the lanes of all that have.
    async fn next_landings(&mut self) -> HashSet<Lane> {
        let mut lanes = HashSet::new();
        let mut next = self.tasks.join_next_with_id().await;
        while let Some(landed) = next {
            let id = landed.map_or_else(
                |error| {
                    tracing::error!(%error, "An attempt to deliver to a webhook panicked");
                    error.id()
                },
                |(id, ())| id,
            );
            lanes.extend(self.destinations.remove(&id).map(|(lane, ..)| lane));
            next = self.tasks.try_join_next_with_id();
        }
        lanes
    }
}
