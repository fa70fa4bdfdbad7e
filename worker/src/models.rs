//! Models as data: a manifest states every fact about a model, bindings say whom it serves, a session runs
//! it, a painter repaints with it, the registry loads it and vouches for it.

pub mod bindings;
pub mod external;
pub mod judge;
pub mod manifest;
pub mod painter;
pub mod registry;
pub mod runs;
pub mod session;
