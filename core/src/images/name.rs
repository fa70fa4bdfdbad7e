//! Names of images: the names of uploaded files, and the names made from them for results.

use retouch_catalog::ToolName;

/// In characters.
const MAX_CHARS: usize = 200;

/// The name of an image: a file name without a folder and without control characters, 1 to 200 characters long.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageName(String);

impl ImageName {
    /// Returns the name of an uploaded file, which browsers and programs may send with its folder. `None` if nothing is
    /// left of it.
    pub fn of_file(path: &str) -> Option<Self> {
        let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let printable: String = file.chars().filter(|char| !char.is_control()).collect();
        let name = printable.trim();
        if name.is_empty() || name == "." || name == ".." {
            return None;
        }
        let (stem, extension) = split_extension(name);
        Some(Self(shortened(stem, extension)))
    }

    /// Returns the name of a result of the image with this name.
    #[must_use]
    pub fn of_result(&self, tool: ToolName, factor: Option<i16>) -> Self {
        let (stem, _) = split_extension(&self.0);
        Self(shortened(stem, &format!(" ({}).png", result_label(tool, factor))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.0
    }
}

/// Returns what the names of a tool's results say in parentheses.
pub fn result_label(tool: ToolName, factor: Option<i16>) -> &'static str {
    match (tool, factor) {
        (ToolName::RemoveBackground, _) => "cut out",
        (ToolName::Upscale, Some(4)) => "4X",
        (ToolName::Upscale, _) => "2X",
        (ToolName::MagicFix, _) => "fixed",
    }
}

/// Splits a name into its stem and its extension, which includes the dot. The extension is empty if the text after the
/// last dot does not look like an extension.
pub fn split_extension(name: &str) -> (&str, &str) {
    let is_extension = |text: &str| {
        (2..=5).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    match name.rfind('.') {
        Some(dot) if dot > 0 && is_extension(&name[dot + 1..]) => name.split_at(dot),
        _ => (name, ""),
    }
}

/// Joins both parts, and cuts the first one if the name would be too long.
fn shortened(stem: &str, rest: &str) -> String {
    let room = MAX_CHARS.saturating_sub(rest.chars().count());
    let stem: String = stem.chars().take(room).collect();
    format!("{}{rest}", stem.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(path: &str) -> Option<String> {
        ImageName::of_file(path).map(String::from)
    }

    #[test]
    fn a_name_is_kept_without_its_folder_and_without_control_characters() {
        for (path, name) in [
            ("cat.jpg", "cat.jpg"),
            ("C:\\Users\\ada\\Katze am Strand.JPG", "Katze am Strand.JPG"),
            ("/home/ada/../猫.webp", "猫.webp"),
            ("a\0b\nc\u{7f}.png", "abc.png"),
            (" no extension ", "no extension"),
            ("100% _really_.png", "100% _really_.png"),
        ] {
            assert_eq!(of_file(path).as_deref(), Some(name), "{path:?}");
        }
        for nothing in ["", "/", "folder/", "\u{1}\u{2}", "..", "folder/.", "   "] {
            assert_eq!(of_file(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_extension() {
        let long = of_file(&format!("{}.jpeg", "ä".repeat(300))).expect("a name");
        assert_eq!(long, format!("{}.jpeg", "ä".repeat(195)));
        let name = ImageName::of_file(&long).expect("a name");
        let result = String::from(name.of_result(ToolName::Upscale, Some(4)));
        assert_eq!(result, format!("{} (4X).png", "ä".repeat(191)));
    }

    #[test]
    fn a_result_is_named_after_its_image() {
        let result = |name: &str, tool, factor| {
            let name = ImageName::of_file(name).expect("a name");
            String::from(name.of_result(tool, factor))
        };
        assert_eq!(result("cat.jpg", ToolName::RemoveBackground, None), "cat (cut out).png");
        assert_eq!(result("cat.jpg", ToolName::Upscale, Some(2)), "cat (2X).png");
        assert_eq!(result("cat", ToolName::MagicFix, None), "cat (fixed).png");
        assert_eq!(result("v1.2", ToolName::MagicFix, None), "v1.2 (fixed).png");
        assert_eq!(result(".jpg", ToolName::MagicFix, None), ".jpg (fixed).png");
    }
}
