//! `retouch-worker bench --all`: measures everything that this machine serves, most informative cases first, so that an
//! interrupted run is still useful. Needs no database.
//!
//! Each model runs under each setting in a process of its own (see `case`). After each process, the record, the report
//! and the charts are written, so a run that ends early loses nothing, and the next one with the same folder continues.

mod case;
mod chart;
mod compare;
mod plan;
mod record;
mod report;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use retouch_inference::bindings::Bindings;
use retouch_inference::device::Device;

pub use case::CaseArgs;
use case::{Line, load_argument, time};
use plan::{Case, REFERENCE};
use record::{Entry, Machine, Outcome, Record};

use super::super::{LimitArgs, ModelArgs, hardware};

/// Minimum time for a process, in seconds, however many cases follow.
const SHORTEST_CASE: f64 = 20.0;

/// Grace period for a process to finish its work after its time is over.
const GRACE: Duration = Duration::from_secs(20);

/// Maximum time for a model to load and to make the result that is compared.
const LONGEST_START: Duration = Duration::from_mins(2);

/// Minimum deadline of a process, even if its share of the remaining time is shorter.
const SHORTEST_DEADLINE: Duration = Duration::from_mins(1);

/// Grace period for a process to exit after its last line of output.
const END_GRACE: Duration = Duration::from_secs(5);

/// The arguments of `bench --all`.
#[derive(Args)]
pub struct SuiteArgs {
    /// Measure every bound model under every setting of this machine, and write a record, a report and charts.
    #[arg(long, required = true)]
    all: bool,
    /// The folder for the results; a run with the same folder continues.
    #[arg(long, default_value = "bench")]
    out: PathBuf,
    /// How long to measure, in minutes; the report names the cases that did not fit.
    #[arg(long, default_value_t = 30.0, value_parser = time)]
    minutes: f64,
    /// How long to measure each load, in seconds.
    #[arg(long, default_value_t = 4.0, value_parser = time)]
    seconds: f64,
    /// The sizes of pictures to measure, in megapixels: 1, 12 and 24, or some of them.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 12, 24])]
    megapixels: Vec<u32>,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl SuiteArgs {
    pub fn execute(self) -> anyhow::Result<()> {
        let until = Instant::now() + Duration::from_secs_f64(self.minutes * 60.0);
        fs::create_dir_all(&self.out).with_context(|| self.out.display().to_string())?;
        let runtime = self.models.runtime()?;
        let device = runtime.device();
        let library = runtime.library().file_name().unwrap_or_default().to_string_lossy();
        let machine = Machine {
            device: hardware::describe(device, &self.models.cuda),
            cpu: hardware::describe(Device::Cpu, &self.models.cuda),
            onnxruntime: library.into_owned(),
            worker: env!("CARGO_PKG_VERSION").to_owned(),
        };
        println!("{}, {}", machine.device, machine.onnxruntime);
        let mut record = Record::open(&self.out, machine)?;
        let bindings = Bindings::read(&self.models.models_dir)?;
        let mut cases = plan::cases(&self.models.models_dir, &bindings, device, &self.megapixels)?;
        cases.retain(|case| case.setting.is_possible(runtime.library()));
        for (number, case) in cases.iter().enumerate() {
            if !self.is_due(&record, case) {
                continue;
            }
            let due = cases[number..].iter().filter(|case| self.is_due(&record, case)).count();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                skip(&mut record, case, "the time was over");
                continue;
            }
            println!("{} ({}), {}", case.model, case.kind.title(), case.setting.name);
            // Time that one case does not use goes to later cases.
            let share = left.as_secs_f64() / due as f64;
            let longest = share.max(SHORTEST_CASE).min(left.as_secs_f64());
            // A process that hangs must not take the time of the other cases.
            let limit = if due == 1 { left + GRACE } else { left * 3 / 4 };
            self.measure(&mut record, case, longest, limit.max(SHORTEST_DEADLINE), until)?;
            self.write(&record)?;
        }
        // Both commands load every model, so they come last and the first table does not wait for them.
        self.save_output("doctor", &["doctor"], until)?;
        self.save_output("models-check", &["models", "check"], until)?;
        let files = self.write(&record)?;
        println!("\n{}\n{files}", report::summary(&record));
        let wrong = record.comparisons.iter().filter(|comparison| !comparison.is_right()).count();
        let failed = record
            .entries
            .iter()
            .filter(|entry| matches!(entry.outcome, Outcome::Failed(_)))
            .count();
        if wrong + failed > 0 {
            bail!("{failed} measurements failed, and {wrong} results differ too much; see {files}");
        }
        Ok(())
    }

    /// Returns whether a case has anything left to measure or to compare.
    fn is_due(&self, record: &Record, case: &Case) -> bool {
        let reference = self.out.join("results").join(format!("{}.png", case.model));
        let is_reference = case.setting.name == REFERENCE;
        let compares = if is_reference {
            case.loads.is_empty() && !reference.exists()
        } else {
            reference.exists() && !record.is_compared(&case.model, case.setting.name)
        };
        let mut loads = case.loads.iter();
        compares
            || loads
                .any(|load| !record.is_settled(case.kind, &case.model, case.setting.name, *load))
    }

    /// Starts the process of a case and records what it prints. A load may take `longest` seconds, and the whole
    /// process `limit`.
    fn measure(
        &self,
        record: &mut Record,
        case: &Case,
        longest: f64,
        limit: Duration,
        until: Instant,
    ) -> anyhow::Result<()> {
        let due: Vec<_> = case
            .loads
            .iter()
            .filter(|load| !record.is_settled(case.kind, &case.model, case.setting.name, **load))
            .copied()
            .collect();
        let log = self.log(&format!("{}-{}", case.model, case.setting.name))?;
        let mut command = program()?;
        command
            .args(["bench", "case", "--model", &case.model, "--setting", case.setting.name])
            .args(case.setting.is_about_batches().then_some("--about-batches"))
            .arg("--out")
            .arg(&self.out)
            .args(due.iter().map(|load| load_argument(*load)))
            .arg(format!("--seconds={}", self.seconds))
            .arg(format!("--longest={longest}"))
            .arg(format!("--max-dimension={}", self.limits.max_dimension))
            .args(self.arguments())
            .args(case.setting.arguments(&self.out))
            .stdout(Stdio::piped())
            .stderr(log.file.try_clone()?);
        // A load warms up, measures its net, and then itself.
        let loads = Duration::from_secs_f64(3.0 * longest * due.len() as f64);
        let deadline = (until + GRACE).min(Instant::now() + limit.min(LONGEST_START + loads));
        let mut open = due;
        let ended = run(command, deadline, |line| {
            match serde_json::from_str(line) {
                Ok(Line::Load(load, outcome)) => {
                    open.retain(|due| *due != load);
                    report::print_line(record.add(entry(case, load, outcome)));
                }
                Ok(Line::Comparison(comparison)) => record.add_comparison(comparison),
                Ok(Line::End) => return ControlFlow::Break(()),
                Err(_) => println!("  {line}"),
            }
            ControlFlow::Continue(())
        })?;
        // Without loads, a failure leaves the comparison open, which the report shows.
        for load in open {
            let outcome = match &ended {
                Ended::Killed => Outcome::Skipped("it was not finished in time".to_owned()),
                Ended::Failed(status) => Outcome::Failed(format!("{status}: {}", log.last_line())),
                Ended::Well => Outcome::Failed("the process said nothing about it".to_owned()),
            };
            report::print_line(record.add(entry(case, load, outcome)));
        }
        Ok(())
    }

    fn write(&self, record: &Record) -> anyhow::Result<String> {
        let file = record.save(&self.out)?;
        let report = self.out.join("bench.md");
        fs::write(&report, report::markdown(record))
            .with_context(|| report.display().to_string())?;
        for (name, svg) in chart::all(record) {
            fs::write(self.out.join(name), svg).context("writing a chart")?;
        }
        Ok(format!("{} and {}", report.display(), file.display()))
    }

    /// Saves the output of another command of this program that describes the machine, once.
    fn save_output(&self, name: &str, args: &[&str], until: Instant) -> anyhow::Result<()> {
        let file = self.out.join(format!("{name}.txt"));
        if file.exists() {
            return Ok(());
        }
        let partial = self.out.join(format!("{name}.partial"));
        let output = File::create(&partial).with_context(|| partial.display().to_string())?;
        let mut command = program()?;
        command.args(args).args(self.arguments()).stdout(Stdio::piped());
        command.stderr(output.try_clone()?);
        let mut text = String::new();
        let ended = run(command, until + GRACE, |line| {
            text.push_str(line);
            text.push('\n');
            ControlFlow::Continue(())
        })?;
        text.push_str(&fs::read_to_string(&partial).unwrap_or_default());
        if matches!(ended, Ended::Killed) {
            text.push_str("The time was over.\n");
            return fs::write(&partial, text).with_context(|| partial.display().to_string());
        }
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        fs::remove_file(&partial).context("removing a partial file")
    }

    fn arguments(&self) -> Vec<String> {
        let ModelArgs { models_dir, .. } = &self.models;
        let mut args = vec![
            format!("--models-dir={}", models_dir.display()),
            format!("--onnxruntime={}", self.models.library().display()),
            format!("--threads={}", self.models.threads()),
        ];
        let mib = self.models.gpu_memory_mib.map(|mib| format!("--gpu-memory-mib={mib}"));
        let tile = self.models.tile_memory_mib.map(|mib| format!("--tile-memory-mib={mib}"));
        let all = self.models.model_memory_mib.map(|mib| format!("--model-memory-mib={mib}"));
        args.extend(mib.into_iter().chain(tile).chain(all));
        args
    }

    fn log(&self, name: &str) -> anyhow::Result<Log> {
        let folder = self.out.join("logs");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let path = folder.join(format!("{}.txt", name.chars().map(plain).collect::<String>()));
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        Ok(Log { path, file })
    }
}

fn program() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe().context("finding this program")?))
}

fn entry(case: &Case, load: plan::Load, outcome: Outcome) -> Entry {
    Entry {
        kind: case.kind,
        model: case.model.clone(),
        setting: case.setting.name.to_owned(),
        load,
        outcome,
    }
}

fn skip(record: &mut Record, case: &Case, reason: &str) {
    for load in &case.loads {
        if !record.is_settled(case.kind, &case.model, case.setting.name, *load) {
            record.add(entry(case, *load, Outcome::Skipped(reason.to_owned())));
        }
    }
}

/// What a process wrote to standard error.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn last_line(&self) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        last.map_or_else(|| format!("see {}", self.path.display()), ToOwned::to_owned)
    }
}

enum Ended {
    Well,
    Failed(std::process::ExitStatus),
    /// It was killed, because its time was over.
    Killed,
}

/// Runs a process whose standard output is piped, and hands over its lines. Kills it at `deadline`. Once `line` returns
/// `Break` for a line, the process counts as successful, however it exits.
fn run(
    mut command: Command,
    mut deadline: Instant,
    mut line: impl FnMut(&str) -> ControlFlow<()>,
) -> anyhow::Result<Ended> {
    let mut process = command.stdin(Stdio::null()).spawn().context("starting a process")?;
    let lines = read_lines(&mut process)?;
    let mut has_said_all = false;
    let is_over = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(text) => {
                if line(&text).is_break() {
                    has_said_all = true;
                    deadline = deadline.min(Instant::now() + END_GRACE);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
        }
    };
    if is_over {
        process.kill().context("ending a process")?;
    }
    let status = process.wait().context("waiting for a process")?;
    Ok(match (is_over, status.success()) {
        _ if has_said_all => Ended::Well,
        (true, _) => Ended::Killed,
        (false, true) => Ended::Well,
        (false, false) => Ended::Failed(status),
    })
}

/// Reads the lines of a process on a thread, so that waiting for them can end.
fn read_lines(process: &mut Child) -> anyhow::Result<mpsc::Receiver<String>> {
    let output = process.stdout.take().context("the process has no output")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell script with a limit of ten seconds; the line `end` completes it.
    fn ended(script: &str) -> (Ended, Vec<String>, Duration) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        let (started, mut lines) = (Instant::now(), Vec::new());
        let ended = run(command, started + Duration::from_secs(10), |line| {
            lines.push(line.to_owned());
            if line == "end" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (ended.unwrap(), lines, started.elapsed())
    }

    #[test]
    fn a_process_that_has_said_everything_has_ended_well_whatever_it_does_then() {
        let (crashed, lines, _) = ended("echo one; echo end; kill -SEGV $$");
        assert!(matches!(crashed, Ended::Well));
        assert_eq!(lines, ["one", "end"]);
        let (hanging, lines, took) = ended("echo end; exec sleep 60");
        assert!(matches!(hanging, Ended::Well));
        assert_eq!(lines, ["end"]);
        assert!(took < END_GRACE + Duration::from_secs(3), "{took:?}");
        let (failed, ..) = ended("echo one; exit 3");
        assert!(matches!(failed, Ended::Failed(status) if status.code() == Some(3)));
    }
}
