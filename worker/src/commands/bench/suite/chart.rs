//! Charts of a record, as SVG: one of horizontal bars per kind.

use std::fmt::Write;

use super::plan::Kind;
use super::record::{Outcome, Record};
use super::report::number;

const WIDTH: u32 = 900;
const LABELS: u32 = 380;
const VALUES: u32 = 90;
const ROW: u32 = 22;
const TOP: u32 = 40;

/// Returns the charts with the names of their files. Kinds without a measurement have none.
pub fn all(record: &Record) -> Vec<(String, String)> {
    let kinds = [
        (Kind::RemoveBg, "remove-bg.svg", "pictures a second"),
        (Kind::Upscale, "upscale.svg", "pictures a second"),
        (Kind::Fix, "fix.svg", "paintings a second"),
        (Kind::Click, "click.svg", "pictures a second"),
    ];
    let charts = kinds.into_iter().filter_map(|(kind, name, unit)| {
        let bars = bars(record, kind);
        let title = format!("{}, {unit}, {}", kind.title(), record.machine.device);
        (!bars.is_empty()).then(|| (name.to_owned(), draw(&title, &bars)))
    });
    charts.collect()
}

fn bars(record: &Record, kind: Kind) -> Vec<(String, f64)> {
    let mut bars = Vec::new();
    for entry in record.entries.iter().filter(|entry| entry.kind == kind) {
        if let Outcome::Measured(measures) = &entry.outcome {
            let load = match (kind.has_sizes(), entry.load) {
                (true, load) => format!(", {} MP × {}", load.megapixels, load.in_flight),
                (false, _) => String::new(),
            };
            bars.push((format!("{}, {}{load}", entry.model, entry.setting), measures.rate));
        }
    }
    bars
}

fn draw(title: &str, bars: &[(String, f64)]) -> String {
    let height = TOP + ROW * bars.len() as u32 + 10;
    let longest = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/><text x=\"10\" y=\"24\" \
         font-size=\"15\" font-weight=\"bold\">{}</text>",
        escape(title)
    );
    for (row, (label, value)) in (0_u32..).zip(bars) {
        let y = TOP + ROW * row;
        let length = f64::from(WIDTH - LABELS - VALUES) * value / longest;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{LABELS}\" y=\"{}\" \
             width=\"{length:.1}\" height=\"14\" fill=\"#4f46e5\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            LABELS - 8,
            y + 15,
            escape(label),
            y + 4,
            f64::from(LABELS) + length + 6.0,
            y + 15,
            number(*value)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_width_and_text_is_escaped() {
        let svg = draw("a & b", &[("one".to_owned(), 2.0), ("two <fast>".to_owned(), 4.0)]);
        assert!(svg.contains("a &amp; b") && svg.contains("two &lt;fast>"), "{svg}");
        assert!(svg.contains("width=\"215.0\"") && svg.contains("width=\"430.0\""), "{svg}");
    }
}
