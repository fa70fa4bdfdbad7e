//! The `canvas` settings of a manifest.

use serde::Deserialize;

/// The size at which a model paints a crop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canvas {
    /// The target side in pixels.
    pub side: u32,
    /// Both sides of the model's input are multiples of this.
    #[serde(default = "one")]
    pub multiple_of: u32,
    /// How `side` applies to a crop.
    pub fit: Fit,
}

const fn one() -> u32 {
    1
}

/// How a crop is scaled to the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Scales the longer side to [`Canvas::side`], the size the model was trained at.
    Scale,
    /// Keeps the crop's size unless a side is longer than [`Canvas::side`].
    Keep,
    /// Like `Scale`, then pads to a square by mirroring.
    Square,
}

impl Canvas {
    /// Checks that the values are in range and consistent.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn check(&self) -> Result<(), String> {
        let Self { side, multiple_of, .. } = *self;
        if !(16..=4096).contains(&side)
            || !(1..=128).contains(&multiple_of)
            || !side.is_multiple_of(multiple_of)
        {
            return Err(
                "canvas.side must be 16 to 4096 and a multiple of canvas.multiple_of, which must be 1 to 128".to_owned()
            );
        }
        Ok(())
    }
}
