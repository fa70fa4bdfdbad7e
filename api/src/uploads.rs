//! How much of what callers send is held at once: a bound on the memory that uploads take, whoever sends them and
//! however slowly.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the bytes that have arrived and are not worked off.
pub struct Uploads {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

impl Uploads {
    /// At most so many bytes of everybody, and half as many of one address.
    pub fn new(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    /// A share of it for one request, empty at first.
    pub const fn share(self: Arc<Self>, address: IpAddr) -> Share {
        Share { uploads: self, address, bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one request has sent so far. Given back when it is dropped.
pub struct Share {
    uploads: Arc<Uploads>,
    address: IpAddr,
    bytes: usize,
}

impl Share {
    /// Counts bytes that have arrived; false when there is no room for them.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let mut held = self.uploads.held();
        let of_one = held.of.get(&self.address).copied().unwrap_or(0) + bytes;
        if held.all + bytes > self.uploads.most || of_one > self.uploads.most / 2 {
            return false;
        }
        held.all += bytes;
        held.of.insert(self.address, of_one);
        self.bytes += bytes;
        true
    }

    /// Gives all of it back.
    pub fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut held = self.uploads.held();
        held.all -= bytes;
        if let Some(of_one) = held.of.get_mut(&self.address) {
            *of_one -= bytes;
            if *of_one == 0 {
                held.of.remove(&self.address);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_all_and_half_of_it_for_one() {
        let uploads = Arc::new(Uploads::new(100));
        let [ada, bob, eve] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let share = |address| Arc::clone(&uploads).share(address);
        let (mut first, mut second) = (share(ada), share(ada));
        assert!(first.grow(30) && second.grow(20) && !second.grow(1), "half for one address");
        let mut others = share(bob);
        assert!(others.grow(50) && !share(eve).grow(1), "all is taken");
        first.give_back();
        assert!(share(eve).grow(30) && !others.grow(1));
        drop((first, second, others));
        let held = uploads.held();
        assert_eq!((held.all, held.of.len()), (0, 0));
    }
}
