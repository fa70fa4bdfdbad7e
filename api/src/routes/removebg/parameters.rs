//! Parses the parameters as remove.bg documents them, and rejects unsupported ones by name.

use bytes::Bytes;

use super::form::{Form, printable};
use super::refusal::Refusal;
use crate::usecases::upload_image::Metadata;
use retouch_pixels::cutout::{
    Channels, CutoutOptions, Format, Length, Margins, Position, parse_color,
};

/// The maximum margin, in pixels and as a share of the subject.
const MAX_MARGIN: (u32, f64) = (500, 0.5);
const NO_MARGIN: Margins = Margins {
    top: Length::Pixels(0),
    right: Length::Pixels(0),
    bottom: Length::Pixels(0),
    left: Length::Pixels(0),
};

/// The parameters parsed so far.
struct Values {
    crop: bool,
    margins: Margins,
    position: Option<Position>,
    options: CutoutOptions,
    metadata: Metadata,
}

/// Returns the image file, how to render its cutout, and what the cutout gets of the file's metadata.
pub fn parse(form: Form) -> Result<(Bytes, CutoutOptions, Metadata), Refusal> {
    let Form { mut files, fields, .. } = form;
    let mut values = Values {
        crop: false,
        margins: NO_MARGIN,
        position: None,
        options: CutoutOptions {
            crop: None,
            scale: None,
            position: Position::Original,
            max_pixels: Some(250_000),
            background: None,
            channels: Channels::Rgba,
            format: Format::Auto,
        },
        metadata: Metadata::Strip,
    };
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in &fields {
        if seen.contains(&name.as_str()) {
            return Err(invalid(name, "was sent twice"));
        }
        seen.push(name);
        values.set(name, value.trim())?;
    }
    match files.len() {
        0 => {
            let title = "The image is missing. Send image_file or image_file_b64.".into();
            Err(Refusal::of_parameter("missing_source", title))
        }
        1 => {
            let metadata = values.metadata;
            Ok((files.remove(0), values.into_options()?, metadata))
        }
        _ => {
            let title = "Send only one image, as image_file or image_file_b64.".into();
            Err(Refusal::of_parameter("multiple_sources", title))
        }
    }
}

impl Values {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        match name {
            "size" => self.options.max_pixels = size(value)?,
            "format" => self.options.format = format(value)?,
            "channels" => self.options.channels = channels(value)?,
            "bg_color" => {
                let color = parse_color(value).ok_or_else(|| invalid(name, "is not a color"))?;
                self.options.background = Some(color);
            }
            "crop" => self.crop = boolean(name, value)?,
            "crop_margin" => self.margins = margins(value)?,
            "scale" => self.options.scale = scale(value)?,
            "position" => self.position = Some(position(value)?),
            "type" => {
                let types = [
                    "auto",
                    "person",
                    "product",
                    "car",
                    "car_interior",
                    "car_part",
                    "animal",
                    "graphic",
                    "graphics",
                    "transportation",
                    "other",
                ];
                one_of(name, value, &types)?;
            }
            // An addition of ours.
            "metadata" => {
                one_of(name, value, &["strip", "keep"])?;
                let keeps = value.eq_ignore_ascii_case("keep");
                self.metadata = if keeps { Metadata::Keep } else { Metadata::Strip };
            }
            "type_level" => one_of(name, value, &["none", "latest", "1", "2"])?,
            // Only the defaults of these are supported.
            "roi" => only(name, is_whole(value), "the whole image")?,
            "add_shadow" => only(name, !boolean(name, value)?, "false")?,
            "shadow_type" => only(name, value.eq_ignore_ascii_case("none"), "none")?,
            "semitransparency" => only(name, boolean(name, value)?, "true")?,
            "image_url" => {
                let title = "image_url is not supported, because this server fetches no URLs. \
                    Send the image as image_file or image_file_b64.";
                return Err(Refusal::of_parameter("unsupported_parameter", title.into()));
            }
            _ => {
                let title = format!("{} is not supported.", printable(name));
                return Err(Refusal::of_parameter("unsupported_parameter", title));
            }
        }
        Ok(())
    }

    fn into_options(self) -> Result<CutoutOptions, Refusal> {
        let Self { crop, margins, position, mut options, metadata } = self;
        if metadata == Metadata::Keep && options.format == Format::Zip {
            return Err(invalid("metadata", "keep cannot be combined with format=zip"));
        }
        if options.channels == Channels::Alpha && options.background.is_some() {
            return Err(invalid("bg_color", "cannot be combined with channels=alpha"));
        }
        if options.channels == Channels::Alpha && options.format == Format::Zip {
            return Err(invalid("format", "zip cannot be combined with channels=alpha"));
        }
        options.crop = crop.then_some(margins);
        // A scaled subject is centered by default.
        let center = Position::At { x: 0.5, y: 0.5 };
        let default = if options.scale.is_some() { center } else { Position::Original };
        options.position = position.unwrap_or(default);
        Ok(options)
    }
}

/// Returns whether a region, as its left, top, right and bottom edges, is the whole picture.
fn is_whole(region: &str) -> bool {
    let edges: Vec<_> = region.split_whitespace().collect();
    let is_start = |edge: &&str| matches!(*edge, "0" | "0px" | "0%");
    edges.len() == 4 && edges[..2].iter().all(is_start) && edges[2..] == ["100%", "100%"]
}

fn size(value: &str) -> Result<Option<u32>, Refusal> {
    match value.to_ascii_lowercase().as_str() {
        "preview" | "small" | "regular" => Ok(Some(250_000)),
        "medium" => Ok(Some(1_500_000)),
        "hd" => Ok(Some(4_000_000)),
        "full" | "4k" | "auto" | "50mp" => Ok(None),
        _ => Err(invalid(
            "size",
            "must be one of preview, small, regular, medium, hd, full, 4k, 50MP, auto",
        )),
    }
}

fn format(value: &str) -> Result<Format, Refusal> {
    match value.to_ascii_lowercase().as_str() {
        "auto" => Ok(Format::Auto),
        "png" => Ok(Format::Png),
        "jpg" | "jpeg" => Ok(Format::Jpeg),
        "webp" => Ok(Format::WebP),
        "zip" => Ok(Format::Zip),
        _ => Err(invalid("format", "must be one of auto, png, jpg, webp, zip")),
    }
}

fn channels(value: &str) -> Result<Channels, Refusal> {
    match value.to_ascii_lowercase().as_str() {
        "rgba" => Ok(Channels::Rgba),
        "alpha" => Ok(Channels::Alpha),
        _ => Err(invalid("channels", "must be rgba or alpha")),
    }
}

fn scale(value: &str) -> Result<Option<f64>, Refusal> {
    if value.eq_ignore_ascii_case("original") {
        return Ok(None);
    }
    match share(value) {
        Some(share) if (0.1..=1.0).contains(&share) => Ok(Some(share)),
        _ => Err(invalid("scale", "must be original or 10% to 100%")),
    }
}

fn position(value: &str) -> Result<Position, Refusal> {
    let within = |value| share(value).filter(|share| (0.0..=1.0).contains(share));
    let words: Vec<&str> = value.split_whitespace().collect();
    let parsed = match words.as_slice() {
        [one] if one.eq_ignore_ascii_case("original") => Some(Position::Original),
        [one] if one.eq_ignore_ascii_case("center") => Some(Position::At { x: 0.5, y: 0.5 }),
        [both] => within(both).map(|share| Position::At { x: share, y: share }),
        [x, y] => within(x).zip(within(y)).map(|(x, y)| Position::At { x, y }),
        _ => None,
    };
    parsed
        .ok_or_else(|| invalid("position", "must be original, center, or one or two of 0% to 100%"))
}

fn margins(value: &str) -> Result<Margins, Refusal> {
    let lengths: Option<Vec<Length>> = value.split_whitespace().map(margin).collect();
    match lengths.as_deref() {
        Some([all]) => Ok(Margins { top: *all, right: *all, bottom: *all, left: *all }),
        Some([high, wide]) => Ok(Margins { top: *high, right: *wide, bottom: *high, left: *wide }),
        Some([top, right, bottom, left]) => {
            Ok(Margins { top: *top, right: *right, bottom: *bottom, left: *left })
        }
        _ => Err(invalid("crop_margin", "must be one, two or four lengths up to 500px or 50%")),
    }
}

fn margin(word: &str) -> Option<Length> {
    let (max_pixels, max_share) = MAX_MARGIN;
    if let Some(share) = share(word) {
        return (0.0..=max_share).contains(&share).then_some(Length::Share(share));
    }
    let pixels = if word == "0" { 0 } else { word.strip_suffix("px")?.parse().ok()? };
    (pixels <= max_pixels).then_some(Length::Pixels(pixels))
}

/// Parses `12.5%` as 0.125.
fn share(word: &str) -> Option<f64> {
    let number = word.strip_suffix('%')?;
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_plain {
        return None;
    }
    number.parse::<f64>().ok().map(|percent| percent / 100.0)
}

fn boolean(name: &str, value: &str) -> Result<bool, Refusal> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(invalid(name, "must be true or false")),
    }
}

fn one_of(name: &str, value: &str, known: &[&str]) -> Result<(), Refusal> {
    if known.iter().any(|known| known.eq_ignore_ascii_case(value)) {
        Ok(())
    } else {
        Err(invalid(name, &format!("must be one of {}", known.join(", "))))
    }
}

fn only(name: &str, is_supported: bool, supported: &str) -> Result<(), Refusal> {
    if is_supported {
        return Ok(());
    }
    let title = format!("{name} supports only {supported}.");
    Err(Refusal::of_parameter("unsupported_parameter", title))
}

fn invalid(name: &str, reason: &str) -> Refusal {
    Refusal::of_parameter("invalid_parameter", format!("{} {reason}.", printable(name)))
}

#[cfg(test)]
mod tests;
