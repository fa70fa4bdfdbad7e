//! The report of a record, as Markdown.

use std::fmt::Write;

use super::plan::Kind;
use super::record::{Entry, Measures, Outcome, Record};

const KINDS: [Kind; 4] = [Kind::RemoveBg, Kind::Upscale, Kind::Fix, Kind::Click];

pub fn print_line(entry: &Entry) {
    let load = load_text(entry);
    match &entry.outcome {
        Outcome::Measured(measures) => {
            println!("  {load:<22} {:>9} /s{}", number(measures.rate), reached_text(measures));
        }
        Outcome::Skipped(reason) | Outcome::Meaningless(reason) => {
            println!("  {load:<22} not measured: {reason}");
        }
        Outcome::Failed(reason) => println!("  {load:<22} FAILED: {reason}"),
    }
}

/// Returns how much has been measured.
pub fn summary(record: &Record) -> String {
    let count =
        |of: fn(&Outcome) -> bool| record.entries.iter().filter(|entry| of(&entry.outcome)).count();
    let right = record.comparisons.iter().filter(|comparison| comparison.is_right()).count();
    format!(
        "{} measured, {} without time, {} failed; {right} of {} results compared are right",
        count(|outcome| matches!(outcome, Outcome::Measured(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        record.comparisons.len()
    )
}

pub fn markdown(record: &Record) -> String {
    let machine = &record.machine;
    let mut text = format!(
        "# {}\n\nCPU: {}. {}, retouch-worker {}. `retouch-worker bench --all`: {}.\n",
        machine.device,
        machine.cpu,
        machine.onnxruntime,
        machine.worker,
        summary(record)
    );
    for kind in KINDS {
        let entries: Vec<_> = record.entries.iter().filter(|entry| entry.kind == kind).collect();
        let measured: Vec<_> = entries.iter().filter_map(|entry| measures_of(entry)).collect();
        if !measured.is_empty() {
            let _ = write!(text, "\n## {}\n\n{}", kind.title(), table(kind, &measured));
        }
    }
    text.push_str(&comparisons(record));
    text.push_str(&missing(record));
    text.push_str(
        "\nReached is the share of what the loaded net alone does with the same inputs; busy, that of the time in which \
         the card ran a kernel. CPU-s are those of a picture or painting. MiB is the most memory of the process, and \
         the card's, of all processes.\n",
    );
    text
}

fn measures_of(entry: &Entry) -> Option<(&Entry, &Measures)> {
    match &entry.outcome {
        Outcome::Measured(measures) => Some((entry, measures)),
        _ => None,
    }
}

fn table(kind: Kind, measured: &[(&Entry, &Measures)]) -> String {
    let unit = match kind {
        Kind::Fix => "paintings/s",
        _ => "pictures/s",
    };
    let header = format!(
        "| model | setting | pictures | {unit} | ms/MP | steps/s | net alone | reached | ORT's defaults | batch | CPU-s | busy | W | MiB |"
    );
    let columns = header.matches('|').count() - 1;
    let mut text = format!("{header}\n|{}\n", "---|".repeat(columns));
    for (entry, measures) in measured {
        let card = measures.card;
        let cells = [
            entry.model.clone(),
            entry.setting.clone(),
            load_text(entry),
            number(measures.rate),
            optional(measures.ms_per_megapixel),
            optional(measures.steps_per_second),
            optional(measures.bare_rate),
            percent(measures.reached()),
            optional(measures.plain_rate),
            measures.batch.map_or_else(String::new, |batch| batch.to_string()),
            number(measures.cpu_seconds),
            percent(card.map(|card| card.busy)),
            optional(card.map(|card| card.watts)),
            match card {
                Some(card) => format!("{}, card {:.0}", measures.resident_mib, card.memory_mib),
                None => measures.resident_mib.to_string(),
            },
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn comparisons(record: &Record) -> String {
    if record.comparisons.is_empty() {
        return String::new();
    }
    let mut text = "\n## Results compared with the CPU's\n\n| model | setting | largest, of 255 | mean | allowed | |\n|---|---|---|---|---|---|\n".to_owned();
    for comparison in &record.comparisons {
        let verdict = if comparison.is_right() { "right" } else { "**WRONG**" };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.3} | {} | {verdict} |",
            comparison.model,
            comparison.setting,
            comparison.largest,
            comparison.mean,
            comparison.tolerance
        );
    }
    text
}

fn missing(record: &Record) -> String {
    // Loads that miss for the same reason share a line.
    let mut lines: Vec<(String, Vec<String>, String)> = Vec::new();
    for entry in &record.entries {
        let reason = match &entry.outcome {
            Outcome::Measured(_) => continue,
            Outcome::Skipped(reason) | Outcome::Meaningless(reason) => reason.clone(),
            Outcome::Failed(reason) => format!("FAILED: {reason}"),
        };
        let (what, load) = (format!("{}, {}", entry.model, entry.setting), load_text(entry));
        match lines.last_mut() {
            Some((known, loads, why)) if *known == what && *why == reason => loads.push(load),
            _ => lines.push((what, vec![load], reason)),
        }
    }
    let mut text = String::new();
    for (what, loads, reason) in lines {
        let _ = writeln!(text, "* {what} ({}): {reason}", loads.join("; "));
    }
    if text.is_empty() { text } else { format!("\n## Not measured\n\n{text}") }
}

fn load_text(entry: &Entry) -> String {
    let load = entry.load;
    match (entry.kind.has_sizes(), load.in_flight) {
        (false, _) => "one at a time".to_owned(),
        (true, 1) => format!("{} MP", load.megapixels),
        (true, at_once) => format!("{} MP, {at_once} at once", load.megapixels),
    }
}

fn reached_text(measures: &Measures) -> String {
    let reached = measures.reached();
    reached.map_or_else(String::new, |share| format!(", {:.0} % of the net alone", share * 100.0))
}

/// Formats a number with three significant digits.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::super::plan::Load;
    use super::super::record::{Comparison, Machine};
    use super::*;

    #[test]
    fn a_report_has_what_was_measured_and_what_was_not() {
        let entry = |setting: &str, in_flight, outcome| Entry {
            kind: Kind::RemoveBg,
            model: "isnet".to_owned(),
            setting: setting.to_owned(),
            load: Load { megapixels: 12, in_flight },
            outcome,
        };
        let measures = Measures {
            pictures: 3,
            rate: 1.5,
            ms_per_megapixel: Some(55.6),
            bare_rate: Some(2.0),
            cpu_seconds: 1.25,
            resident_mib: 400,
            ..Measures::default()
        };
        let record = Record {
            machine: Machine {
                device: "A card".to_owned(),
                cpu: "A CPU".to_owned(),
                onnxruntime: "libonnxruntime.so.1".to_owned(),
                worker: "1".to_owned(),
            },
            entries: vec![
                entry("CUDA", 4, Outcome::Measured(Box::new(measures))),
                entry("CUDA", 1, Outcome::Skipped("the time was over".to_owned())),
                entry("TensorRT", 4, Outcome::Failed("no engine".to_owned())),
            ],
            comparisons: vec![Comparison {
                model: "isnet".to_owned(),
                setting: "CUDA".to_owned(),
                largest: 9,
                mean: 0.75,
                tolerance: 0.5,
            }],
        };
        let text = markdown(&record);
        for part in [
            "# A card\n",
            "1 measured, 1 without time, 1 failed; 0 of 1 results compared are right",
            "| isnet | CUDA | 12 MP, 4 at once | 1.50 | 55.6 |  | 2.00 | 75 % |  |  | 1.25 |  |  | 400 |",
            "| isnet | CUDA | 9 | 0.750 | 0.5 | **WRONG** |",
            "* isnet, CUDA (12 MP): the time was over",
            "* isnet, TensorRT (12 MP, 4 at once): FAILED: no engine",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("## Upscale"), "{text}");
    }
}
