//! The pictures that were clicked last, within a bound of memory.

use std::time::{Duration, Instant};

use retouch_core::ImageId;

use super::known::Known;

/// A picture that nobody has clicked for this long is dropped from the cache.
const IDLE: Duration = Duration::from_mins(10);

pub struct Cache {
    capacity_bytes: u64,
    /// Sorted by last use; the most recent is last.
    entries: Vec<Entry>,
}

struct Entry {
    image: ImageId,
    known: Known,
    used_at: Instant,
}

impl Cache {
    /// Creates a cache for pictures that take up to `capacity_bytes` together while they are worked on.
    pub const fn new(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, entries: Vec::new() }
    }

    pub fn contains(&self, image: ImageId) -> bool {
        self.entries.iter().any(|entry| entry.image == image)
    }

    /// Takes a picture out, to work on it.
    pub fn take(&mut self, image: ImageId) -> Option<Known> {
        let at = self.entries.iter().position(|entry| entry.image == image)?;
        Some(self.entries.remove(at).known)
    }

    /// Drops the least recently used pictures until there is room for `bytes`. A picture that needs more than the capacity
    /// gets all of it.
    pub fn make_room(&mut self, bytes: u64) {
        while !self.entries.is_empty() && self.bytes() + bytes > self.capacity_bytes {
            self.entries.remove(0);
        }
    }

    /// Puts a picture in as the most recently used. Those used longest ago make room for what models found in it.
    pub fn put(&mut self, image: ImageId, known: Known) {
        self.make_room(known.memory_bytes());
        self.entries.push(Entry { image, known, used_at: Instant::now() });
    }

    /// Drops the pictures that nobody has used for a while.
    pub fn forget_idle(&mut self) {
        self.entries.retain(|entry| entry.used_at.elapsed() < IDLE);
    }

    fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.known.memory_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use retouch_pixels::Picture;
    use retouch_pixels::select::Scene;

    use super::*;

    fn known(side: u32) -> Known {
        let rgb = vec![0; (side * side * 3) as usize];
        Known::new(Scene::new(Picture {
            width: side,
            height: side,
            rgb,
            alpha: None,
            gray: false,
            icc: None,
        }))
    }

    #[test]
    fn the_picture_used_longest_ago_makes_room() {
        let bytes = Scene::memory_bytes(64, 64);
        let mut cache = Cache::new(2 * bytes);
        let images: Vec<_> = (0..3).map(|_| ImageId::new()).collect();
        for image in &images[..2] {
            cache.make_room(bytes);
            cache.put(*image, known(64));
        }
        let first = cache.take(images[0]).expect("it is known");
        cache.put(images[0], first);
        cache.make_room(bytes);
        cache.put(images[2], known(64));
        let is_known: Vec<_> = images.iter().map(|image| cache.contains(*image)).collect();
        assert_eq!(is_known, [true, false, true]);
    }

    #[test]
    fn a_picture_larger_than_the_capacity_is_alone() {
        let mut cache = Cache::new(1);
        let (small, large) = (ImageId::new(), ImageId::new());
        cache.put(small, known(8));
        cache.make_room(Scene::memory_bytes(64, 64));
        cache.put(large, known(64));
        assert!(!cache.contains(small) && cache.contains(large));
    }
}
