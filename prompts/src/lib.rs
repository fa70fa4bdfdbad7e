//! Prompts of Magic Fix, and the mode that each means. No pixels, no models, no state.
//!
//! One small table decides the mode (`languages/vocabulary` has its words). API and workers share it, so a prompt that no
//! installed model can follow is refused before anything is held. A prompt may ask for several things, such as *remove
//! the cup and put a flower there*; the first decides, but the removal of a thing decides before an enhancement or a
//! restoration: *enhance the photo and remove the man*. Courtesies are ignored. The first row that matches wins:
//!
//! | the prompt | mode | done by |
//! |---|---|---|
//! | removes something, and adds a thing or replaces it; or removes a thing, and changes another, except to a *natural* look | edit | a text-guided model |
//! | enhances or restores, and adds a thing or replaces one, or *colorizes*, or makes another *blue*; or enhances the sky *with clouds*, or repairs a wall *with bricks* | edit | a text-guided model |
//! | removes *scratches, damage, a crease* | restore | a fill for thin strokes, otherwise the upscaler |
//! | removes *noise, grain, blur* | enhance | the upscaler |
//! | begins with *remove, erase, get rid of, hide, without, clean up*, or with *clean, clear, no* before *the, my, it* and the like, or is *no people* and nothing more, or makes a thing *disappear*, or *doesn't want* it | remove | a fill from the surroundings |
//! | begins with *enhance, sharpen, improve, upscale, denoise*, or cleans *the photo* itself, or raises *the quality*, or makes it *clear, 4k*, or fixes *a blur*, or asks for *more detail, sharper, less blurry* | enhance | the upscaler |
//! | begins with *restore, repair, mend, fix, heal*, or cleans *the old photo* | restore | as above |
//! | begins with *add, put, insert, give him, draw, write*, or *place, paint* before *a, the, some* and the like | add | a text-guided model |
//! | begins with no verb, and mentions *scratches, damage, an old photo* | restore | as above |
//! | anything else | edit | a text-guided model |

mod caption;
mod languages;
mod mode;
mod offer;
mod text;

pub use offer::Offer;

use retouch_catalog::FixMode;

/// In characters.
pub const MAX_PROMPT_LENGTH: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// It is empty or only white space.
    #[error("Prompt is required")]
    Missing,
    #[error("Prompt is too long, maximum of {MAX_PROMPT_LENGTH} letters is allowed")]
    TooLong,
}

/// A valid prompt and its mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    text: String,
    mode: FixMode,
}

impl Prompt {
    /// Parses a prompt of 1 to [`MAX_PROMPT_LENGTH`] characters. Trims it, and replaces control characters other than line
    /// breaks with spaces, because they cannot be stored.
    ///
    /// # Errors
    /// If the prompt is empty or too long.
    pub fn parse(text: &str) -> Result<Self, PromptError> {
        let is_invisible = |c: char| c.is_control() && c != '\n';
        let visible: String = text.chars().map(|c| if is_invisible(c) { ' ' } else { c }).collect();
        let text = visible.trim();
        match text.chars().count() {
            0 => Err(PromptError::Missing),
            length if length > MAX_PROMPT_LENGTH => Err(PromptError::TooLong),
            _ => {
                let mode = languages::mode_of(text);
                Ok(Self { text: text.to_owned(), mode })
            }
        }
    }

    /// Returns the prompt as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub const fn mode(&self) -> FixMode {
        self.mode
    }

    /// Returns a caption of the masked area after the fix, for models that follow captions rather than
    /// instructions: the prompt without its verb, and for a replacement only the new thing.
    ///
    /// *"Replace the cup with a red flower"* becomes *"a red flower"*.
    pub fn caption(&self) -> String {
        caption::caption_of(&self.text)
    }

    /// Returns the words of the caption that `vocabulary` lacks, in lower case and without repeats. Numbers and
    /// symbols count as words.
    pub fn unknown_words(&self, vocabulary: &[String]) -> Vec<String> {
        let mut unknown = Vec::new();
        for word in text::words_of(&self.caption()) {
            let word = word.to_lowercase();
            if !vocabulary.contains(&word) && !unknown.contains(&word) {
                unknown.push(word);
            }
        }
        unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Prompt {
        Prompt::parse(text).expect("a prompt")
    }

    #[test]
    fn prompts_have_the_modes_of_the_table() {
        use FixMode::{Add, Edit, Enhance, Remove, Restore};
        for (text, mode) in [
            ("remove the object", Remove),
            ("Remove the man in the background!", Remove),
            ("please erase this", Remove),
            ("get rid of the wires", Remove),
            ("clean up the wall", Remove),
            ("without the cup", Remove),
            ("Remove the cup and replace it with a flower", Edit),
            ("replace the cup with a red flower", Edit),
            ("a red circle", Edit),
            ("make it blue", Edit),
            ("notice board", Edit),
            ("add a hat", Add),
            ("Put a cup on the table", Add),
            ("remove the man with the hat", Remove),
            ("remove the car by the road", Remove),
            ("I want to remove the car", Remove),
            ("help me remove this pls", Remove),
            ("make it disappear", Remove),
            ("clean the wall", Remove),
            ("hide", Remove),
            ("remove", Remove),
            ("remove background people", Remove),
            ("clear sky", Edit),
            ("clean shaven face", Edit),
            ("no parking sign", Edit),
            ("cover with snow", Edit),
            ("remove noise", Enhance),
            ("get rid of the grain", Enhance),
            ("clean up the photo", Enhance),
            ("please clean this picture up", Enhance),
            ("clean the picture frame", Remove),
            ("clean up the wall in the photo", Remove),
            ("remove the object in the middle of the picture", Remove),
            ("erase the man from my photo", Remove),
            ("remove the blur from the photo", Enhance),
            ("remove the scratches", Restore),
            ("add more detail", Enhance),
            ("make it clearer", Enhance),
            ("a tear on her cheek", Edit),
            ("give him a hat", Add),
            ("paint the wall red", Add),
            ("please", Edit),
            ("restore the old photo", Restore),
            ("fix the scratches", Restore),
            ("scratches on the face", Restore),
            ("enhance", Enhance),
            ("sharpen the eyes", Enhance),
            ("more details", Enhance),
            ("could you please improve this", Enhance),
            ("一只猫", Edit),
            ("🐱", Edit),
            ("أزل الكوب", Edit),
        ] {
            assert_eq!(prompt(text).mode(), mode, "{text}");
        }
    }

    #[test]
    fn captions_describe_the_picture_after_the_fix() {
        for (text, caption) in [
            ("replace the cup with a red flower", "a red flower"),
            ("turn it into gold", "gold"),
            ("change the colour to blue", "blue"),
            ("add a hat", "a hat"),
            ("make it blue", "blue"),
            ("a red circle", "a red circle"),
            ("please make it red", "red"),
            ("please add a hat", "a hat"),
            ("could you change it to a cat?", "a cat"),
            ("replace the man standing by the door with a tree", "a tree"),
            ("Remove the cup and replace it with a flower", "a flower"),
            ("Remove the cup and put a flower there", "a flower"),
            ("erase him and add a red circle instead", "a red circle"),
            ("erase him and make sure to place a red circle there", "a red circle"),
            ("make sure you add a hat", "a hat"),
            ("remove the salt and pepper", "remove the salt and pepper"),
            ("replace the cup with a vase with red roses", "a vase with red roses"),
            ("replace the man with the hat with a tree", "a tree"),
            ("replace the cup by a man with a hat", "a man with a hat"),
            ("replace the cup with the red flower", "the red flower"),
            ("turn the car to the left into a boat to sail in", "a boat to sail in"),
            ("swap the cup for a vase with roses", "a vase with roses"),
            ("remove the cup, then add a red circle", "a red circle"),
            ("Remove the cup.\nPlease draw a red circle", "a red circle"),
            ("remove the cup and place mat", "remove the cup and place mat"),
            ("erase the logo and write SALE", "write SALE"),
            ("take the car out & put a bike there", "a bike"),
            ("add a hat and remove the glasses", "a hat"),
            ("Change the sky to a sunset. Remove the car.", "a sunset"),
            ("remove the cup and add salt & pepper", "salt & pepper"),
            ("remove the background and make it white", "white"),
            ("remove the man and turn his car into a boat", "a boat"),
            ("remove the dog and change it to a cat", "a cat"),
            ("remove the tie and change the shirt to red", "red"),
            ("remove the cup, make it look natural and put a flower there", "a flower"),
            ("remove the change and the swap meet", "remove the change and the swap meet"),
            ("add a red circle, thanks", "a red circle"),
            ("add a red circle there please", "a red circle"),
            ("a red circle please. Thank you!", "a red circle"),
            ("add a sign that says thanks", "a sign that says thanks"),
            ("please", "please"),
            ("1. change the sky to blue\n2. remove the car", "blue"),
            ("add 2 red circles", "2 red circles"),
            ("replace the sky with the sunset by the sea", "the sunset by the sea"),
            ("replace the man by the door with the tree", "the tree"),
            ("make the wall red and take the sign out", "the wall red"),
            ("make the wall red and take the sign out and add a hat", "the wall red"),
            ("add salt and pepper, and make it red", "salt and pepper and make it red"),
            ("replace it", "replace it"),
            ("add", "add"),
        ] {
            assert_eq!(prompt(text).caption(), caption, "{text}");
        }
    }

    #[test]
    fn captions_name_only_what_is_new() {
        for (text, caption) in [
            ("put a vase instead of the cup", "a vase"),
            ("a cat instead of the dog", "a cat"),
            ("I want a vase instead of the cup", "a vase"),
            ("replace the cup with a vase instead of a plant", "a vase"),
            ("instead of the cup, a vase", "a vase"),
            ("instead of the cup, please put a vase there", "a vase"),
            ("instead of the cup", "instead of the cup"),
            ("remove the dog and instead add a cat", "a cat"),
            ("make the dog into a cat", "a cat"),
            ("make it into a cat", "a cat"),
            ("make the dog look into the mirror", "the dog look into the mirror"),
            ("make him jump into a lake", "him jump into a lake"),
            ("make the dog bigger", "the dog bigger"),
            ("make a cat jumping into the water", "a cat jumping into the water"),
            ("exchange the dog for a cat", "a cat"),
            ("exchange dog for cat", "cat"),
            ("substitute the dog with a cat", "a cat"),
            ("substitute the dog for a cat", "a cat"),
            ("substitute a cat for the dog", "a cat"),
            ("remove the man and exchange the dog for a cat", "a cat"),
            ("add a cat, and make sure not to change the dog", "a cat"),
            ("add a cat and make sure you don't move the dog", "a cat"),
            ("add a cat without changing the dog", "a cat"),
            ("add a cat but keep the sofa", "a cat"),
            ("change the background to a beach, keep the person", "a beach"),
            ("change the background to a beach but don’t change the person", "a beach"),
            ("replace the sky with stars, don't touch the mountains", "stars"),
            ("add a cat, not a dog", "a cat"),
            ("add a man without a hat", "a man without a hat"),
            ("add a house without windows", "a house without windows"),
            ("add a man without smiling people", "a man without smiling people"),
            ("add a sign: do not enter", "a sign do not enter"),
            ("add a poster, keep calm", "a poster keep calm"),
            ("add a sign that says leave the room", "a sign that says leave the room"),
            ("add a tree and leaves", "a tree and leaves"),
            (
                "make the wall red and don't forget to add a hat",
                "the wall red and don't forget to add a hat",
            ),
            ("enhance the sky with northern lights", "northern lights"),
            ("repair the car into a truck", "a truck"),
            ("upgrade the car to a Ferrari", "a Ferrari"),
            ("remove the wall to show a garden", "a garden"),
            ("remove the sign to show the garden", "remove the sign to show the garden"),
            ("delete the shirt and dress him in a suit", "dress him in a suit"),
        ] {
            assert_eq!(prompt(text).caption(), caption, "{text}");
        }
    }

    #[test]
    fn every_order_of_courtesies_and_requests_has_a_caption() {
        let pieces = [
            "remove the man",
            "add a hat",
            "put a vase instead of the cup",
            "replace the cup with",
            "make it into",
            "change the sky to blue",
            "enhance the sky with clouds",
            "please",
            "thanks",
            "also",
            "and",
            "then",
            "instead of",
            "but keep",
            "make sure not to",
            "without changing the dog",
            "to show a",
            "it is a logo",
            "could you",
            "upgrade",
            "use",
            "with",
            "for the",
            "1. ",
            "\"",
            "\n",
            ",",
            ". ",
            "! ",
        ];
        let of_three = |mut number: usize| {
            let next = |()| {
                let piece = pieces[number % pieces.len()];
                number /= pieces.len();
                piece
            };
            [(); 3].map(next).join(" ")
        };
        for text in (0..pieces.len().pow(3)).map(of_three) {
            if let Ok(prompt) = Prompt::parse(&text) {
                let is_empty = text::words_of(&text).is_empty();
                assert_eq!(prompt.caption().is_empty(), is_empty, "{text}");
            }
        }
    }

    #[test]
    fn prompts_have_1_to_500_characters() {
        assert_eq!(Prompt::parse(" \n "), Err(PromptError::Missing));
        assert_eq!(Prompt::parse(&"ж".repeat(501)), Err(PromptError::TooLong));
        assert_eq!(prompt(&format!("  {}  ", "ж".repeat(500))).text().chars().count(), 500);
        assert_eq!(prompt("a\u{0}b\nc").text(), "a b\nc");
    }

    #[test]
    fn a_prompt_that_no_model_can_follow_is_refused_with_alternatives() {
        let offer = Offer { modes: vec![FixMode::Remove, FixMode::Restore], ..Offer::default() };
        assert_eq!(offer.check(&prompt("remove it")), Ok(()));
        let refused = offer.check(&prompt("a castle")).unwrap_err();
        assert!(refused.contains("Try “remove it” or “restore”."), "{refused}");
        let demo = Offer {
            modes: FixMode::ALL.to_vec(),
            vocabulary: Some(["a", "red", "circle", "with", "it"].map(str::to_owned).to_vec()),
            is_demo: true,
        };
        assert_eq!(demo.check(&prompt("a red circle")), Ok(()));
        assert_eq!(demo.check(&prompt("Make it RED!")), Ok(()));
        assert_eq!(demo.check(&prompt("remove the castle")), Ok(()));
        let refused = demo.check(&prompt("a castle in the sky")).unwrap_err();
        assert!(refused.contains("“castle”, “in”, “the”, “sky”"), "{refused}");
        assert!(Offer::default().check(&prompt("remove")).is_err());
    }
}
