//! Texts that were embedded recently. A text encoder takes as long as several steps, and texts repeat: people run a prompt
//! again, and removals, restorations and enhancements always have the same one.

use std::sync::Arc;

use lru::LruCache;

/// Maximum size of the embedded texts that a pipeline keeps, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// A negative prompt, if the pipeline takes one, and a prompt.
pub(super) type Texts = (Option<String>, String);

/// The embedded texts used most recently.
pub(super) struct RecentTexts<T> {
    kept: LruCache<Texts, (Arc<T>, usize)>,
    bytes: usize,
}

impl<T> RecentTexts<T> {
    pub(super) fn new() -> Self {
        Self { kept: LruCache::unbounded(), bytes: 0 }
    }

    /// Returns the embedded texts. `embed` makes them if they are not kept, and says how many bytes they have.
    pub(super) fn get_or_embed<E>(
        &mut self,
        texts: Texts,
        embed: impl FnOnce(&Texts) -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        if let Some((embedded, _)) = self.kept.get(&texts) {
            return Ok(embedded.clone());
        }
        let (embedded, bytes) = embed(&texts)?;
        let embedded = Arc::new(embedded);
        self.kept.put(texts, (embedded.clone(), bytes));
        self.bytes += bytes;
        while self.bytes > MAX_BYTES
            && let Some((_, (_, bytes))) = self.kept.pop_lru()
        {
            self.bytes -= bytes;
        }
        Ok(embedded)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const HALF: usize = MAX_BYTES / 2;

    /// Asks for a prompt of so many bytes, and returns whether it was embedded.
    fn embeds(recent: &mut RecentTexts<String>, prompt: &str, bytes: usize) -> bool {
        let mut is_embedded = false;
        let texts = (None, prompt.to_owned());
        let found = recent.get_or_embed(texts, |(_, prompt)| {
            is_embedded = true;
            Ok::<_, Infallible>((format!("embedded {prompt}"), bytes))
        });
        assert_eq!(*found.unwrap(), format!("embedded {prompt}"));
        is_embedded
    }

    #[test]
    fn a_repeated_text_is_embedded_once_and_the_least_recent_goes_first() {
        let mut recent = RecentTexts::new();
        assert!(embeds(&mut recent, "a", HALF));
        assert!(embeds(&mut recent, "b", HALF));
        assert!(!embeds(&mut recent, "a", HALF));
        assert!(embeds(&mut recent, "c", HALF));
        assert!(!embeds(&mut recent, "a", HALF), "it was used after b");
        assert!(embeds(&mut recent, "b", HALF));
    }

    #[test]
    fn what_is_larger_than_the_room_is_not_kept() {
        let mut recent = RecentTexts::new();
        assert!(embeds(&mut recent, "a", 1));
        assert!(embeds(&mut recent, "large", MAX_BYTES + 1));
        assert!(embeds(&mut recent, "large", MAX_BYTES + 1));
        assert_eq!((recent.bytes, recent.kept.len()), (0, 0));
    }

    #[test]
    fn a_failure_is_not_kept() {
        let mut recent = RecentTexts::<String>::new();
        let texts = || (None, "a".to_owned());
        assert_eq!(recent.get_or_embed(texts(), |_| Err("no memory")), Err("no memory"));
        assert!(embeds(&mut recent, "a", 1));
    }

    #[test]
    fn a_negative_prompt_makes_another_text() {
        let mut recent = RecentTexts::new();
        for negative in [None, Some(String::new()), Some("blurry".to_owned())] {
            let texts = (negative, "a".to_owned());
            let found = recent.get_or_embed(texts, |texts| Ok::<_, Infallible>((texts.clone(), 1)));
            assert_eq!(found.unwrap().1, "a");
        }
        assert_eq!(recent.kept.len(), 3);
    }
}
