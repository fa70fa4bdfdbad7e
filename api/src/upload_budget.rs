//! Bounds the memory that uploads in progress take, in total and per client address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory for uploads, in bytes.
pub struct UploadBudget {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl UploadBudget {
    /// Creates a budget of `limit` bytes, of which one address can use half.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::default() }
    }

    /// Returns an empty reservation for one request.
    pub const fn reservation(self: Arc<Self>, address: IpAddr) -> UploadReservation {
        UploadReservation { budget: self, address, bytes: 0 }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the budget that one request uses. Dropping it releases the bytes.
pub struct UploadReservation {
    budget: Arc<UploadBudget>,
    address: IpAddr,
    bytes: usize,
}

impl UploadReservation {
    /// Reserves `bytes` more; returns false if the budget is exhausted.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let mut used = self.budget.used();
        let of_address = used.by_address.get(&self.address).copied().unwrap_or(0) + bytes;
        if used.total + bytes > self.budget.limit || of_address > self.budget.limit / 2 {
            return false;
        }
        used.total += bytes;
        used.by_address.insert(self.address, of_address);
        self.bytes += bytes;
        true
    }

    /// Releases all bytes.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut used = self.budget.used();
        used.total -= bytes;
        if let Some(of_address) = used.by_address.get_mut(&self.address) {
            *of_address -= bytes;
            if *of_address == 0 {
                used.by_address.remove(&self.address);
            }
        }
    }
}

impl Drop for UploadReservation {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_gets_half_of_the_budget() {
        let budget = Arc::new(UploadBudget::new(100));
        let [ada, bob, eve] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let reservation = |address| Arc::clone(&budget).reservation(address);
        let (mut first, mut second) = (reservation(ada), reservation(ada));
        assert!(first.grow(30) && second.grow(20) && !second.grow(1), "half for one address");
        let mut others = reservation(bob);
        assert!(others.grow(50) && !reservation(eve).grow(1), "the budget is exhausted");
        first.release();
        assert!(reservation(eve).grow(30) && !others.grow(1));
        drop((first, second, others));
        let used = budget.used();
        assert_eq!((used.total, used.by_address.len()), (0, 0));
    }
}
