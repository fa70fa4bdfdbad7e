//! The size at which a model repaints a crop.

use serde::Deserialize;

/// The picture that a model paints on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canvas {
    /// The side that a crop is brought to, in pixels; see `fit`.
    pub side: u32,
    /// Both sides of what the model is given are multiples of this.
    #[serde(default = "one")]
    pub multiple_of: u32,
    /// How a crop is brought to it.
    pub fit: Fit,
}

const fn one() -> u32 {
    1
}

/// How a crop is brought to the size that a model works at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// The longer side is scaled to the canvas's side: the size that the model was trained at.
    Scale,
    /// A crop is worked on pixel for pixel unless a side is longer than the canvas's.
    Keep,
    /// As `Scale`, and what is missing of a square mirrors what is there.
    Square,
}

impl Canvas {
    /// Checks that the values fit together.
    ///
    /// # Errors
    /// One sentence that names the field.
    pub fn check(&self) -> Result<(), String> {
        let Self { side, multiple_of, .. } = *self;
        if !(16..=4096).contains(&side)
            || !(1..=128).contains(&multiple_of)
            || !side.is_multiple_of(multiple_of)
        {
            return Err(
                "canvas.side must be 16 to 4096 and a multiple of canvas.multiple_of, which is 1 to 128".to_owned()
            );
        }
        Ok(())
    }
}
