//! What Retouch offers: tools, their modes and factors, and the tiers that runs belong to.
//!
//! API, workers and models agree on these names: they appear in the database, in the queue, in `models/tools.toml` and
//! in JSON. The crate knows nothing else, so that [`JobClass`] means the same wherever it is used.

mod class;
mod count;
mod fix_mode;
mod name;
mod tier;
mod tool;

pub use class::JobClass;
pub use count::{Count, CountUnit};
pub use fix_mode::FixMode;
pub use name::UnknownName;
pub use tier::Tier;
pub use tool::{Factor, Tool, ToolName};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_to_what_they_were_written_from() {
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
