//! The names of an archive's files: unique, and allowed by the file systems of all computers.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use retouch_core::images::split_extension;

/// The list of missing files.
pub const MISSING: &str = "missing.txt";
/// The longest name that the usual file systems of Linux allow.
const MAX_BYTES: usize = 255;

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
            self.unique(stem, "", extension)
        } else {
            self.unique(stem, "", default)
        }
    }

    /// Returns a name for a result of the image with this name.
    pub fn of_result(&mut self, image: &str, label: &str) -> String {
        let (stem, _) = split_extension(image);
        self.unique(stem, &format!(" ({label})"), ".png")
    }

    fn unique(&mut self, stem: &str, label: &str, extension: &str) -> String {
        let plain = shortened(stem, &format!("{label}{extension}"));
        let mut number = self.0.get(&plain.to_lowercase()).copied().unwrap_or(0);
        let name = loop {
            number += 1;
            let name = if number == 1 {
                plain.clone()
            } else {
                shortened(stem, &format!("{label} ({number}){extension}"))
            };
            if !self.0.contains_key(&name.to_lowercase()) {
                break name;
            }
        };
        self.0.insert(name.to_lowercase(), 1);
        self.0.insert(plain.to_lowercase(), number);
        name
    }
}

/// Joins both parts, and cuts the first one if the name would be too long.
fn shortened(stem: &str, rest: &str) -> String {
    let stem = &stem[..stem.floor_char_boundary(MAX_BYTES - rest.len())];
    format!("{}{rest}", stem.trim_end())
}

/// Replaces what Windows does not allow in the name of a file, and names that it does not allow.
fn allowed(name: &str) -> String {
    let replaced = name.replace(['<', '>', ':', '"', '|', '?', '*', '/', '\\'], "_");
    let name = replaced.trim_end_matches(['.', ' ']);
    match name.split_once('.') {
        Some((first, rest)) if is_device(first) => format!("{first}_.{rest}"),
        None if is_device(name) => format!("{name}_"),
        _ => name.to_owned(),
    }
}

/// Returns true if Windows takes a file with this name, without its extensions, for a device.
fn is_device(name: &str) -> bool {
    let name = name.trim_end().to_lowercase();
    let port = name.strip_prefix("com").or_else(|| name.strip_prefix("lpt"));
    let mut number = port.unwrap_or_default().chars();
    matches!(name.as_str(), "con" | "prn" | "aux" | "nul")
        || matches!((number.next(), number.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
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

    #[test]
    fn names_fit_the_file_systems_of_linux() {
        let uploaded = "2026-11-23T10:00:00Z".parse().expect("a time");
        let mut names = Names::default();
        // 200 characters, which an upload may have.
        let long = format!("{}.jpg", "猫".repeat(196));
        let first = names.of_image(Some(&long), "image/jpeg", uploaded);
        assert_eq!(first, format!("{}.jpg", "猫".repeat(83)));
        let second = names.of_image(Some(&long), "image/jpeg", uploaded);
        assert_eq!(second, format!("{} (2).jpg", "猫".repeat(82)));
        let result = names.of_result(&first, "cut out");
        assert_eq!(result, format!("{} (cut out).png", "猫".repeat(80)));
    }

    #[test]
    fn names_are_no_devices_of_windows() {
        for (name, expected) in [
            ("CON.png", "CON_.png"),
            ("aux.old.png", "aux_.old.png"),
            ("com1.png", "com1_.png"),
            ("lpt³.png", "lpt³_.png"),
            ("nul", "nul_"),
            ("console.png", "console.png"),
            ("com10.png", "com10.png"),
            ("com.png", "com.png"),
        ] {
            assert_eq!(allowed(name), expected);
        }
    }
}
