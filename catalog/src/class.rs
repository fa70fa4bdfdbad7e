//! Job classes.

use std::fmt;

use crate::tier::Tier;
use crate::tool::ToolName;

/// A tool and a tier. Each class has its own stream in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobClass {
    /// The tier; the first field, so that classes sort by urgency.
    pub tier: Tier,
    pub tool: ToolName,
}

impl fmt::Display for JobClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tool, self.tier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paid_classes_sort_before_free_ones() {
        let mut classes = [
            JobClass { tier: Tier::Visitor, tool: ToolName::RemoveBackground },
            JobClass { tier: Tier::Paid, tool: ToolName::Upscale },
            JobClass { tier: Tier::Free, tool: ToolName::RemoveBackground },
        ];
        classes.sort();
        assert_eq!(classes.map(|class| class.tier), [Tier::Paid, Tier::Free, Tier::Visitor]);
    }
}
