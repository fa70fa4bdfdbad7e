//! The price of a run.

use retouch_catalog::{Factor, Tool};

/// Returns the price of a paid run of `tool`, in credits.
pub const fn price(tool: Tool) -> i32 {
    match tool {
        Tool::RemoveBackground => 5,
        Tool::Upscale(Factor::X2) => 3,
        Tool::Upscale(Factor::X4) => 6,
        Tool::MagicFix(_) => 8,
    }
}

#[cfg(test)]
mod tests {
    use retouch_catalog::FixMode;

    use super::*;

    #[test]
    fn prices_match_the_price_list() {
        assert_eq!(price(Tool::RemoveBackground), 5);
        assert_eq!(price(Tool::Upscale(Factor::X2)), 3);
        assert_eq!(price(Tool::Upscale(Factor::X4)), 6);
        assert_eq!(price(Tool::MagicFix(FixMode::Remove)), 8);
    }
}
