//! A linear gradient.

/// A linear gradient, as CSS defines `linear-gradient`: at 0 degrees it runs upwards, at 90 to the right, and the corners
/// in its direction have the pure colors. Colors are mixed in their own encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    /// The first color: R, G, B.
    pub from: [u8; 3],
    /// The last color.
    pub to: [u8; 3],
    /// The direction in degrees, clockwise from upwards.
    pub angle: f64,
}

impl Gradient {
    /// Returns a function of column and row for a picture of this size.
    pub(super) fn colors(&self, (width, height): (u32, u32)) -> impl Fn(u32, u32) -> [u8; 3] {
        let Self { from, to, angle } = *self;
        let (sin, cos) = angle.to_radians().sin_cos();
        let (width, height) = (f64::from(width), f64::from(height));
        let length = (width * sin).abs() + (height * cos).abs();
        // The share of the second color grows evenly in both directions.
        let (right, down) = (sin / length, -cos / length);
        let start = 0.5 - right * (width - 1.0) / 2.0 - down * (height - 1.0) / 2.0;
        move |x, y| {
            let share = (start + right * f64::from(x) + down * f64::from(y)).clamp(0.0, 1.0) as f32;
            std::array::from_fn(|channel| {
                let (from, to) = (f32::from(from[channel]), f32::from(to[channel]));
                (from + (to - from) * share + 0.5) as u8
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_runs_in_its_direction() {
        let gray = |angle, x, y| {
            let gradient = Gradient { from: [0; 3], to: [200; 3], angle };
            gradient.colors((10, 20))(x, y)[0]
        };
        // Half a pixel from the border, that is 1/40 or 1/20 of the way.
        assert_eq!([gray(0.0, 3, 19), gray(0.0, 3, 0)], [5, 195], "upwards");
        assert_eq!([gray(180.0, 3, 0), gray(180.0, 3, 19)], [5, 195], "downwards");
        assert_eq!([gray(90.0, 0, 7), gray(90.0, 9, 7)], [10, 190], "to the right");
        assert_eq!([gray(270.0, 9, 7), gray(270.0, 0, 7)], [10, 190], "to the left");
        // To the upper right. The line is (10 + 20) sin 45° long; a corner's pixel is sin 45° from its end.
        assert_eq!([gray(45.0, 0, 19), gray(45.0, 9, 0)], [7, 193]);
        assert_eq!(gray(45.0, 4, 10).abs_diff(gray(45.0, 5, 9)), 14);
    }
}
