//! The shapes that tools and checks give a net, from its contract.

use super::{NetTask, Upscale};
use crate::shapes::InputShapes;

/// The side of the pictures in the checks, in pixels.
pub const SAMPLE_SIDE: u32 = 128;

impl NetTask<'_> {
    /// Returns the shapes of the net's input when at most `inputs` run together. A batch of tiles holds at most as many as
    /// fit into `tile_memory_bytes` at their largest size.
    pub fn input_shapes(self, inputs: usize, tile_memory_bytes: u64) -> InputShapes {
        // Height and width of the smallest and the largest input.
        let (least, most, inputs) = match self {
            Self::Segmentation(segmentation) => {
                let size = (segmentation.input.height, segmentation.input.width);
                (size, size, inputs)
            }
            Self::Upscale(upscale) => {
                let fixed = upscale.input.height.zip(upscale.input.width);
                let (least, most) = fixed.map_or_else(
                    || {
                        let (least, most) = upscale.sides(tile_memory_bytes);
                        ((least, least), (most, most))
                    },
                    |size| (size, size),
                );
                let per_pixel = upscale.tiling.memory_bytes_per_pixel.max(1);
                let bytes = u64::from(most.0) * u64::from(most.1) * u64::from(per_pixel);
                (least, most, inputs.min((tile_memory_bytes / bytes) as usize))
            }
        };
        let shape = |inputs: usize, (height, width): (u32, u32)| {
            [inputs, height as usize, width as usize, 3]
        };
        InputShapes { least: shape(1, least), most: shape(inputs.max(1), most) }
    }
}

impl Upscale {
    /// Returns the smallest and the largest side of an input with padding, if the net takes any size.
    fn sides(&self, tile_memory_bytes: u64) -> (u32, u32) {
        let tiling = self.tiling;
        let padding = tiling.padding;
        let factors = [1, 2, 4].into_iter().filter(|factor| self.can_make(*factor).is_ok());
        let of_pictures = factors.map(|factor| {
            let padding = self.padding_for(factor);
            tiling.side_within(padding, tile_memory_bytes) + 2 * padding
        });
        let around = padding.max(2 * Self::MARGIN);
        let of_areas = tiling.side_within(around, tile_memory_bytes).min(Self::LARGEST_AREA);
        let of_areas = of_areas + 2 * around;
        let of_samples = SAMPLE_SIDE + 2 * padding;
        let largest = of_pictures.fold(of_areas.max(of_samples), u32::max);
        // A picture may have a single row.
        let smallest = 1 + 2 * padding;
        (
            smallest.next_multiple_of(tiling.multiple_of),
            largest.next_multiple_of(tiling.multiple_of),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Manifest;
    use super::*;

    fn shapes(model: &str, inputs: usize, tile_memory_bytes: u64) -> InputShapes {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
        let Manifest { task, .. } = Manifest::read(&models.join(model)).unwrap();
        task.net().unwrap().input_shapes(inputs, tile_memory_bytes)
    }

    #[test]
    fn only_the_batch_of_a_net_of_one_size_varies() {
        let isnet = shapes("isnet", 8, 4 << 30);
        assert_eq!((isnet.least, isnet.most), ([1, 1024, 1024, 3], [8, 1024, 1024, 3]));
        let fixed = shapes("tiny/upscale-fixed", 8, 4 << 30);
        assert_eq!(fixed.least[1..], fixed.most[1..]);
        assert_eq!((fixed.least[0], fixed.most[0]), (1, 8));
    }

    #[test]
    fn tiles_vary_from_one_row_to_the_largest_with_their_surroundings() {
        let small = shapes("realesr-animevideov3-x4", 8, 4 << 30);
        assert_eq!(small.least, [1, 1 + 2 * 18, 1 + 2 * 18, 3]);
        let side = small.most[1];
        assert!((384 + 2 * 18..384 + 2 * 29).contains(&side), "{side}");
        assert_eq!(small.most, [8, side, side, 3]);
    }

    #[test]
    fn memory_limits_the_side_of_tiles_and_then_their_number() {
        let large = shapes("realesrgan-x4plus", 8, 4 << 30);
        assert_eq!(large.most[0], 1, "one tile of {} fills 4 GiB", large.most[1]);
        let plenty = shapes("realesrgan-x4plus", 8, 64 << 30);
        assert_eq!(plenty.most[0], 7, "{plenty:?}");
        assert!(plenty.most[1] > large.most[1], "{plenty:?}");
        let little = shapes("realesrgan-x4plus", 8, 1 << 30);
        assert!(little.most[1] < large.most[1], "{little:?}");
        assert_eq!(little.most[0], 1);
    }
}
