//! The words of each language. Letters are in lower case and without accents, and `ä` is `ae`, as `folded` leaves them.
//!
//! In phrases, `DET` is any determiner, `A` an indefinite article, and `ANY` any word: "tire DET" is a removal in
//! Portuguese, where "tire" is also an English noun. A Spanish verb also matches its forms with a pronoun: "quita"
//! matches "quítalo".
//!
//! The lists are short on purpose: a missing verb costs a paid edit, and a mistaken verb costs a wrong picture.

mod chinese;
mod english;
mod french;
mod german;
mod japanese;
mod portuguese;
mod spanish;

pub use self::chinese::CHINESE;
pub use self::english::ENGLISH;
pub use self::french::FRENCH;
pub use self::german::GERMAN;
pub use self::japanese::JAPANESE;
pub use self::portuguese::PORTUGUESE;
pub use self::spanish::SPANISH;
use super::words::Words;

/// The languages with spaces between words. A prompt may mix them: a word means the same in all of them.
pub const LANGUAGES: [Words; 5] = [ENGLISH, GERMAN, SPANISH, FRENCH, PORTUGUESE];
