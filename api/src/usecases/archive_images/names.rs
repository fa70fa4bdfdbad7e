//! The names of an archive's files: unique, and allowed by the file systems of all computers.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use retouch_core::images::split_extension;

/// The list of missing files.
pub const MISSING: &str = "missing.txt";

/// The names that are taken, in lower case, because some file systems ignore case. Each has the last number that was
/// added to it.
pub struct Names(HashMap<String, usize>);

impl Default for Names {
    fn default() -> Self {
        Self(HashMap::from([(MISSING.to_owned(), 1)]))
    }
}

impl Names {
    /// Returns a name for an image of this type.
    pub fn of_image(
        &mut self,
        name: Option<&str>,
        content_type: &str,
        created_at: DateTime<Utc>,
    ) -> String {
        let fallback = || created_at.format("image-%Y-%m-%d").to_string();
        let name = name.map(allowed).filter(|name| !name.is_empty()).unwrap_or_else(fallback);
        let (stem, extension) = split_extension(&name);
        let (default, fitting): (_, &[_]) = match content_type {
            "image/jpeg" => (".jpg", &[".jpg", ".jpeg", ".jpe", ".jfif"]),
            "image/webp" => (".webp", &[".webp"]),
            _ => (".png", &[".png"]),
        };
        // A picture that was rotated upright may have another type than its file had.
        if fitting.contains(&extension.to_ascii_lowercase().as_str()) {
            self.unique(stem, extension)
        } else {
            self.unique(stem, default)
        }
    }

    /// Returns a name for a result of the image with this name.
    pub fn of_result(&mut self, image: &str, label: &str) -> String {
        let (stem, _) = split_extension(image);
        self.unique(&format!("{stem} ({label})"), ".png")
    }

    fn unique(&mut self, stem: &str, extension: &str) -> String {
        let plain = format!("{stem}{extension}");
        let mut number = self.0.get(&plain.to_lowercase()).copied().unwrap_or(0);
        let name = loop {
            number += 1;
            let name =
                if number == 1 { plain.clone() } else { format!("{stem} ({number}){extension}") };
            if !self.0.contains_key(&name.to_lowercase()) {
                break name;
            }
        };
        self.0.insert(name.to_lowercase(), 1);
        self.0.insert(plain.to_lowercase(), number);
        name
    }
}

/// Replaces what Windows does not allow in the name of a file.
fn allowed(name: &str) -> String {
    let replaced = name.replace(['<', '>', ':', '"', '|', '?', '*', '/', '\\'], "_");
    replaced.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_the_type_of_the_file() {
        let uploaded = "2026-11-23T10:00:00Z".parse().expect("a time");
        let mut names = Names::default();
        let mut of = |name, kind| names.of_image(name, kind, uploaded);
        assert_eq!(of(Some("cat.jpg"), "image/jpeg"), "cat.jpg");
        assert_eq!(of(Some("Cat.JPG"), "image/jpeg"), "Cat (2).JPG");
        assert_eq!(of(Some("cat (2).jpg"), "image/jpeg"), "cat (2) (2).jpg");
        assert_eq!(of(Some("turned.webp"), "image/png"), "turned.png");
        assert_eq!(of(Some("v1.2"), "image/png"), "v1.2.png");
        assert_eq!(of(Some("what? 1:2."), "image/webp"), "what_ 1_2.webp");
        assert_eq!(of(Some("..."), "image/jpeg"), "image-2026-11-23.jpg");
        assert_eq!(of(None, "image/jpeg"), "image-2026-11-23 (2).jpg");
        assert_eq!(names.of_result("cat.jpg", "cut out"), "cat (cut out).png");
        assert_eq!(names.of_result("cat.jpg", "cut out"), "cat (cut out) (2).png");
        assert_eq!(names.of_result("Cat (2).JPG", "2X"), "Cat (2) (2X).png");
    }
}
