//! Shares scarce resources, such as upload memory and connections, fairly among client IP addresses or users.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::limits::reserved_file::kept_with;

/// A budget of units; one client, an address or a user, may use half of the units that the others leave.
///
/// A lone client can take half of the budget, the next one a quarter. However much a few clients take, some units remain
/// for a newcomer.
pub struct FairBudget<Client = IpAddr> {
    limit: usize,
    used: Mutex<Used<Client>>,
}

struct Used<Client> {
    total: usize,
    by_client: HashMap<Client, usize>,
}

impl<Client: Copy + Eq + Hash> FairBudget<Client> {
    /// Creates a budget of `limit` units.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::new(Used { total: 0, by_client: HashMap::new() }) }
    }

    /// Returns an empty share for one client; `None` is a client without a limit of its own, such as a proxy.
    pub const fn share(self: Arc<Self>, client: Option<Client>) -> Share<Client> {
        Share { budget: self, client, units: 0 }
    }

    fn used(&self) -> MutexGuard<'_, Used<Client>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the budget that one client uses. Dropping it releases the units.
#[must_use]
pub struct Share<Client: Copy + Eq + Hash = IpAddr> {
    budget: Arc<FairBudget<Client>>,
    client: Option<Client>,
    units: usize,
}

impl<Client: Copy + Eq + Hash> Share<Client> {
    /// Takes `units` more; returns false if the budget or the client's part of it is exhausted.
    pub fn grow(&mut self, units: usize) -> bool {
        self.grow_to(units, usize::MAX)
    }

    /// Like [`Self::grow`], and returns false if the client would then use more than `most` units.
    pub fn grow_to(&mut self, units: usize, most: usize) -> bool {
        let limit = self.budget.limit;
        let mut used = self.budget.used();
        if used.total + units > limit {
            return false;
        }
        if let Some(client) = self.client {
            let own = used.by_client.get(&client).copied().unwrap_or(0);
            let others = used.total - own;
            if own + units > most.min((limit - others) / 2) {
                return false;
            }
            used.by_client.insert(client, own + units);
        }
        used.total += units;
        self.units += units;
        true
    }

    /// Releases all units.
    pub fn release(&mut self) {
        self.shrink_to(0);
    }

    /// Moves up to `units` into a share of their own.
    pub fn split(&mut self, units: usize) -> Self {
        let units = units.min(self.units);
        self.units -= units;
        Self { budget: Arc::clone(&self.budget), client: self.client, units }
    }

    /// Releases all but `kept` units.
    pub fn shrink_to(&mut self, kept: usize) {
        let units = self.units.saturating_sub(kept);
        self.units -= units;
        let mut used = self.budget.used();
        used.total -= units;
        let Some(client) = self.client else { return };
        if let Some(own) = used.by_client.get_mut(&client) {
            *own -= units;
            if *own == 0 {
                used.by_client.remove(&client);
            }
        }
    }
}

impl Share {
    /// Keeps the units until the last copy of `file` is dropped.
    pub fn keep_for(self, file: Bytes) -> Bytes {
        kept_with(file, self)
    }
}

impl<Client: Copy + Eq + Hash> Drop for Share<Client> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_half_of_what_the_others_leave() {
        let budget = Arc::new(FairBudget::new(100));
        let share = |last| Arc::clone(&budget).share(Some(IpAddr::from([10, 0, 0, last])));
        let (mut first, mut second) = (share(1), share(1));
        assert!(first.grow(30) && second.grow(20) && !second.grow(1), "half for one address");
        let mut others = share(2);
        assert!(others.grow(25) && !others.grow(1), "a quarter for the next");
        assert!(share(3).grow(12), "a newcomer finds room");
        assert!(!share(3).grow_to(5, 4), "but not more than its cap");
        first.release();
        assert!(others.grow(10));
        let part = others.split(20);
        drop(others);
        assert!(share(3).grow(30) && !share(3).grow(31), "20 are still used");
        drop(part);
        let mut others = share(2);
        assert!(others.grow(40));
        others.shrink_to(35);
        let mut proxy = Arc::clone(&budget).share(None);
        assert!(proxy.grow(45) && !proxy.grow(1), "a proxy gets what is left");
        drop((first, second, others, proxy));
        let used = budget.used();
        assert_eq!((used.total, used.by_client.len()), (0, 0));
    }
}
