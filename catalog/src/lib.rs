//! What Retouch offers: tools, their factors and modes, and tiers.
//!
//! API, workers and models share these names. They appear in the database, in Redis, in `models/tools.toml` and in
//! JSON.

mod class;
mod count;
mod fix_mode;
mod name;
mod reach;
mod tier;
mod tool;

pub use class::JobClass;
pub use count::{Count, CountUnit};
pub use fix_mode::FixMode;
pub use name::UnknownName;
pub use reach::Reach;
pub use tier::Tier;
pub use tool::{Factor, Tool, ToolName};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_to_their_values() {
        for tool in ToolName::ALL {
            assert_eq!(tool.as_str().parse::<ToolName>().expect("a known name"), tool);
        }
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse::<Tier>().expect("a known name"), tier);
        }
        for mode in FixMode::ALL {
            assert_eq!(mode.as_str().parse::<FixMode>().expect("a known name"), mode);
        }
        assert!("sharpen".parse::<ToolName>().is_err());
    }
}
