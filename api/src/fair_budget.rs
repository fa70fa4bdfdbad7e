//! Shares scarce resources, such as upload memory and connections, fairly among client addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::kept::kept_with;

/// A budget of units; one address may use half of the units that the others leave.
///
/// A lone address can take half of the budget, the next one a quarter. However much a few addresses take, some units
/// remain for a newcomer.
pub struct FairBudget {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl FairBudget {
    /// Creates a budget of `limit` units.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::default() }
    }

    /// Returns an empty share for one client; `None` is a client without a limit of its own, such as a proxy.
    pub const fn share(self: Arc<Self>, address: Option<IpAddr>) -> Share {
        Share { budget: self, address, units: 0 }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the budget that one client uses. Dropping it releases the units.
#[must_use]
pub struct Share {
    budget: Arc<FairBudget>,
    address: Option<IpAddr>,
    units: usize,
}

impl Share {
    /// Takes `units` more; returns false if the budget or the address's part of it is exhausted.
    pub fn grow(&mut self, units: usize) -> bool {
        self.grow_to(units, usize::MAX)
    }

    /// Like [`Self::grow`], and returns false if the address would then use more than `most` units.
    pub fn grow_to(&mut self, units: usize, most: usize) -> bool {
        let limit = self.budget.limit;
        let mut used = self.budget.used();
        if used.total + units > limit {
            return false;
        }
        if let Some(address) = self.address {
            let own = used.by_address.get(&address).copied().unwrap_or(0);
            let others = used.total - own;
            if own + units > most.min((limit - others) / 2) {
                return false;
            }
            used.by_address.insert(address, own + units);
        }
        used.total += units;
        self.units += units;
        true
    }

    /// Releases all units.
    pub fn release(&mut self) {
        self.shrink_to(0);
    }

    /// Keeps the units until the last copy of `file` is dropped.
    pub fn keep_for(self, file: Bytes) -> Bytes {
        kept_with(file, self)
    }

    /// Moves up to `units` into a share of their own.
    pub fn split(&mut self, units: usize) -> Self {
        let units = units.min(self.units);
        self.units -= units;
        Self { budget: Arc::clone(&self.budget), address: self.address, units }
    }

    /// Releases all but `kept` units.
    pub fn shrink_to(&mut self, kept: usize) {
        let units = self.units.saturating_sub(kept);
        self.units -= units;
        let mut used = self.budget.used();
        used.total -= units;
        let Some(address) = self.address else { return };
        if let Some(own) = used.by_address.get_mut(&address) {
            *own -= units;
            if *own == 0 {
                used.by_address.remove(&address);
            }
        }
    }
}

impl Drop for Share {
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
        assert_eq!((used.total, used.by_address.len()), (0, 0));
    }
}
