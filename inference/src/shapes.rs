//! The shapes of inputs that a picture net must take. An engine is built for a range of them.

/// The shapes of a net's input, from the least to the largest size of each axis. Shapes are `[batch, row, column,
/// channel]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputShapes {
    pub least: [usize; 4],
    pub most: [usize; 4],
}

impl InputShapes {
    /// Returns whether a shape is in the range.
    pub fn hold(&self, shape: [usize; 4]) -> bool {
        (0..4).all(|axis| (self.least[axis]..=self.most[axis]).contains(&shape[axis]))
    }

    /// Returns the least and the largest shape as `name:1x64x64x3`, for a graph whose input has this name and these axes
    /// (`None` for any size). An axis that the graph fixes keeps its size. `None` if the graph fixes them all: it has one
    /// shape.
    pub fn profile(&self, name: &str, axes: &[Option<usize>]) -> Option<[String; 2]> {
        if axes.iter().all(Option::is_some) {
            return None;
        }
        Some([self.least, self.most].map(|shape| {
            let sizes = shape.into_iter().zip(axes);
            let sizes: Vec<_> = sizes.map(|(size, own)| own.unwrap_or(size).to_string()).collect();
            format!("{name}:{}", sizes.join("x"))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: InputShapes = InputShapes { least: [1, 16, 16, 3], most: [8, 512, 256, 3] };

    #[test]
    fn a_profile_keeps_the_sizes_that_the_graph_fixes() {
        let texts = |least: &str, most: &str| Some([least.to_owned(), most.to_owned()]);
        let open = SHAPES.profile("in", &[None; 4]);
        assert_eq!(open, texts("in:1x16x16x3", "in:8x512x256x3"));
        let fixed_batch = SHAPES.profile("in", &[Some(1), None, None, Some(3)]);
        assert_eq!(fixed_batch, texts("in:1x16x16x3", "in:1x512x256x3"));
        assert_eq!(SHAPES.profile("in", &[Some(1), Some(64), Some(64), Some(3)]), None);
    }

    #[test]
    fn a_shape_is_held_if_each_axis_is() {
        let InputShapes { least, most } = SHAPES;
        assert!(SHAPES.hold(least) && SHAPES.hold(most) && SHAPES.hold([2, 512, 16, 3]));
        for outside in [[9, 16, 16, 3], [1, 15, 16, 3], [1, 16, 257, 3], [1, 16, 16, 4]] {
            assert!(!SHAPES.hold(outside), "{outside:?}");
        }
    }
}
