//! The shapes of inputs that a net must take. An engine is built for a range of them.

use crate::tensor::Layout;

/// The shapes of a net's input, from the least to the largest size of each axis. Shapes are `[batch, channel, row,
/// column]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputShapes {
    /// The input tensor's name in the graph.
    pub name: String,
    /// The order of the axes in the graph.
    pub layout: Layout,
    /// The least size of each axis.
    pub least: [usize; 4],
    /// The largest size of each axis.
    pub most: [usize; 4],
}

impl InputShapes {
    /// Returns whether a shape is in the range.
    pub fn hold(&self, shape: [usize; 4]) -> bool {
        (0..4).all(|axis| (self.least[axis]..=self.most[axis]).contains(&shape[axis]))
    }

    /// Returns the least and the largest shape as `name:1x3x64x64`, for a graph whose input has these axes (`None` for
    /// any size). An axis that the graph fixes keeps its size. `None` if the graph fixes them all: it has one shape.
    pub fn profile(&self, axes: &[Option<usize>]) -> Option<[String; 2]> {
        if axes.iter().all(Option::is_some) {
            return None;
        }
        Some([self.least, self.most].map(|shape| {
            let sizes = self.layout.arrange(shape).into_iter().zip(axes);
            let sizes: Vec<_> = sizes.map(|(size, own)| own.unwrap_or(size).to_string()).collect();
            format!("{}:{}", self.name, sizes.join("x"))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_keeps_the_sizes_that_the_graph_fixes() {
        let (least, most) = ([1, 3, 16, 16], [8, 3, 512, 256]);
        let name = "in".to_owned();
        let shapes = InputShapes { name, layout: Layout::Nchw, least, most };
        let texts = |least: &str, most: &str| Some([least.to_owned(), most.to_owned()]);
        assert_eq!(shapes.profile(&[None; 4]), texts("in:1x3x16x16", "in:8x3x512x256"));
        let fixed_batch = [Some(1), Some(3), None, None];
        assert_eq!(shapes.profile(&fixed_batch), texts("in:1x3x16x16", "in:1x3x512x256"));
        assert_eq!(shapes.profile(&[Some(1), Some(3), Some(64), Some(64)]), None);
        let channels_last = InputShapes { layout: Layout::Nhwc, ..shapes };
        assert_eq!(channels_last.profile(&[None; 4]), texts("in:1x16x16x3", "in:8x512x256x3"));
    }

    #[test]
    fn a_shape_is_held_if_each_axis_is() {
        let (least, most) = ([1, 3, 16, 16], [8, 3, 512, 256]);
        let shapes = InputShapes { name: String::new(), layout: Layout::Nchw, least, most };
        assert!(shapes.hold(least) && shapes.hold(most) && shapes.hold([2, 3, 512, 16]));
        for outside in [[9, 3, 16, 16], [1, 3, 15, 16], [1, 3, 16, 257], [1, 4, 16, 16]] {
            assert!(!shapes.hold(outside), "{outside:?}");
        }
    }
}
