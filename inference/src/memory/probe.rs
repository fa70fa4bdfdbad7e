//! Reads the memory of a device.

use std::sync::Arc;

use crate::device::Device;

/// A quantity of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The memory that is free for this process, in bytes.
    Free,
    /// The memory in use now, in bytes. Resets the peak.
    Used,
    /// The peak since then, in bytes; on a GPU the memory in use now, because sessions keep their peak.
    Peak,
}

#[derive(Clone)]
pub struct Probe(Arc<dyn Fn(Device, Reading) -> Option<u64> + Send + Sync>);

impl Probe {
    /// Creates a probe from a function that returns a reading in bytes, or `None` if that is not possible.
    pub fn new(read: impl Fn(Device, Reading) -> Option<u64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Reads the memory, in bytes; `None` if that is not possible.
    pub fn read(&self, device: Device, reading: Reading) -> Option<u64> {
        (self.0)(device, reading)
    }
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct MemorySettings {
    /// The limit for all loaded models together, in bytes. `None` means no limit on a CPU, and nine tenths of the
    /// memory that is free at the start on a GPU.
    pub limit_bytes: Option<u64>,
    pub probe: Probe,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { limit_bytes: None, probe: Probe::new(|_, _| None) }
    }
}
