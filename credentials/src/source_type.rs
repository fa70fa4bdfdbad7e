//! The source type of a picture, in the vocabulary of the IPTC.

use std::fmt;

use serde::{Serialize, Serializer};

/// The vocabulary of the IPTC (<https://cv.iptc.org/newscodes/digitalsourcetype/>).
const VOCABULARY: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";
/// Maximum length of a name from a file, in bytes. The longest of the vocabulary has 36.
const MAX_NAME_BYTES: usize = 64;
/// The weight of content from a trained model.
const GENERATED: u8 = 3;

/// A term of the IPTC's vocabulary *Digital Source Type*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceType(String);

impl SourceType {
    /// A picture with parts that a trained model made.
    pub fn composite_with_trained_media() -> Self {
        Self("compositeWithTrainedAlgorithmicMedia".to_owned())
    }

    /// A picture with parts that an algorithm without a trained model made.
    pub fn composite_synthetic() -> Self {
        Self("compositeSynthetic".to_owned())
    }

    /// A picture that an algorithm corrected or enlarged, without adding content.
    pub fn algorithmically_enhanced() -> Self {
        Self("algorithmicallyEnhanced".to_owned())
    }

    /// Reads a term from its URI, with `http` or `https`; `None` if it is not from the vocabulary.
    pub fn parse(uri: &str) -> Option<Self> {
        let uri = uri.trim().replacen("https://", "http://", 1);
        let name = uri.strip_prefix(VOCABULARY)?;
        let is_term = !name.is_empty()
            && name.len() <= MAX_NAME_BYTES
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_term.then(|| Self(name.to_owned()))
    }

    pub fn uri(&self) -> String {
        self.to_string()
    }

    /// Returns whether a trained model made the picture, or parts of it.
    pub fn is_generated(&self) -> bool {
        self.weight() == GENERATED
    }

    /// Returns the weight: if several source types apply to a picture, the one with the greatest weight counts. Content
    /// from a trained model outweighs content from another program, and any origin outweighs corrections.
    pub(crate) fn weight(&self) -> u8 {
        match self.0.as_str() {
            "trainedAlgorithmicMedia" | "compositeWithTrainedAlgorithmicMedia" => GENERATED,
            "algorithmicMedia" | "compositeSynthetic" | "dataDrivenMedia" | "virtualRecording" => 2,
            "algorithmicallyEnhanced" => 0,
            _ => 1,
        }
    }
}

impl fmt::Display for SourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VOCABULARY}{}", self.0)
    }
}

impl Serialize for SourceType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terms_of_the_vocabulary_are_read() {
        let generated = SourceType::parse(
            " https://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia\n",
        );
        assert!(generated.as_ref().is_some_and(SourceType::is_generated), "{generated:?}");
        let own = SourceType::composite_with_trained_media();
        assert_eq!(SourceType::parse(&own.uri()), Some(own));
        let enhanced = SourceType::algorithmically_enhanced();
        assert!(!enhanced.is_generated());
        let long = format!("{VOCABULARY}{}", "a".repeat(65));
        for text in [
            "",
            "trainedAlgorithmicMedia",
            VOCABULARY,
            "http://x/y",
            &format!("{VOCABULARY}a\"b"),
            &long,
        ] {
            assert_eq!(SourceType::parse(text), None, "{text}");
        }
    }
}
