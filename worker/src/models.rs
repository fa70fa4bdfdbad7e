//! Models as data: a manifest states every fact about a model, bindings say whom it serves, a session runs
//! it, the registry loads it and vouches for it.

pub mod bindings;
pub mod external;
pub mod manifest;
pub mod registry;
pub mod session;
