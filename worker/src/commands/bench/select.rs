//! `retouch-worker bench select`: how well and how fast one click selects, on pictures whose masks are known.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use retouch_pixels::Limits;
use retouch_pixels::decode::decode;
use retouch_pixels::select::{Marks, Point, Scene};

use super::super::run::millis;
use super::super::{LimitArgs, ModelArgs};
use crate::pixel_pool::PixelPool;
use crate::select::{Known, Models, Wanted};
use crate::tools::ToolError;

/// The arguments of `bench select`.
#[derive(Args)]
pub struct SelectArgs {
    /// A folder of pictures. Beside each NAME.jpg or NAME.png lies its mask, NAME-mask.png: bright where the subject is.
    folder: PathBuf,
    /// Where to write the selections, as NAME-selected.png [default: nowhere]
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// How many further clicks to time on each picture, once it is known.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clicks: u32,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// A picture and the pixels of its subject.
struct Case {
    name: String,
    file: Bytes,
    width: usize,
    subject: Vec<bool>,
}

impl SelectArgs {
    pub async fn execute(self) -> anyhow::Result<()> {
        let cases = read_cases(&self.folder)?;
        let registry = Arc::new(self.models.registry()?);
        let (pixels, limits) = (self.models.pixel_pool()?, self.limits.limits());
        let models = Models::new(registry.clone(), pixels.clone());
        ensure!(models.is_available(), "no model for Remove Background is bound");
        registry.load_all().await?;
        let (mut overlaps, mut firsts, mut nexts) = (Vec::new(), Vec::new(), Vec::new());
        println!("{:<24} {:>8} {:>10} {:>10}", "picture", "IoU", "first ms", "next ms");
        for case in &cases {
            let clicks = clicks(case, self.clicks as usize + 1);
            let [click, others @ ..] = clicks.as_slice() else {
                bail!("{}: the mask is empty", case.name)
            };
            let started = Instant::now();
            let mut known = prepare(&pixels, case.file.clone(), limits).await?;
            let png = select(&models, &mut known, *click).await?;
            let first = started.elapsed();
            let overlap = png.as_ref().map_or(Ok(0.0), |png| overlap(png, case))?;
            if let (Some(folder), Some(png)) = (&self.output, &png) {
                fs::write(folder.join(format!("{}-selected.png", case.name)), png)?;
            }
            let mut own = Vec::new();
            for click in others {
                let started = Instant::now();
                select(&models, &mut known, *click).await?;
                own.push(started.elapsed());
            }
            let next = median(&mut own.clone());
            println!(
                "{:<24} {overlap:>8.3} {:>10.0} {:>10.0}",
                case.name,
                millis(first),
                millis(next)
            );
            overlaps.push(overlap);
            firsts.push(first);
            nexts.extend(own);
        }
        overlaps.sort_by(f64::total_cmp);
        let mean = overlaps.iter().sum::<f64>() / overlaps.len() as f64;
        let good = overlaps.iter().filter(|overlap| **overlap >= 0.85).count();
        println!(
            "\n{} pictures, one click each: IoU mean {mean:.3}, worst {:.3}; {good} reach 0.85",
            overlaps.len(),
            overlaps[0]
        );
        println!(
            "first click, with decoding: p50 {:.0} ms, slowest {:.0} ms",
            millis(median(&mut firsts)),
            millis(firsts[firsts.len() - 1])
        );
        println!(
            "later clicks: p50 {:.0} ms, slowest {:.0} ms",
            millis(median(&mut nexts)),
            millis(nexts[nexts.len() - 1])
        );
        Ok(())
    }
}

/// Sorts durations and returns the middle one.
fn median(durations: &mut [Duration]) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

fn read_cases(folder: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    paths.sort();
    for path in paths {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let mask = folder.join(format!("{name}-mask.png"));
        if !mask.is_file() {
            continue;
        }
        let gray = image::open(&mask).with_context(|| mask.display().to_string())?.into_luma8();
        cases.push(Case {
            name: name.to_owned(),
            file: fs::read(&path).with_context(|| path.display().to_string())?.into(),
            width: gray.width() as usize,
            subject: gray.into_raw().into_iter().map(|value| value >= 128).collect(),
        });
    }
    ensure!(!cases.is_empty(), "{}: no picture has a mask beside it", folder.display());
    Ok(cases)
}

/// Returns `count` clicks inside the subject: where it is widest, then further ones between its middle and its edge.
fn clicks(case: &Case, count: usize) -> Vec<Point> {
    let (width, height) = (case.width, case.subject.len() / case.width);
    // City-block distance to the nearest pixel outside, in two passes.
    let mut depth: Vec<u32> =
        case.subject.iter().map(|on| if *on { u32::MAX / 2 } else { 0 }).collect();
    let outside = |at: Option<usize>, depth: &[u32]| at.map_or(0, |at| depth[at]);
    for at in 0..depth.len() {
        let (left, above) = ((at % width > 0).then(|| at - 1), at.checked_sub(width));
        depth[at] = depth[at].min(outside(left, &depth).min(outside(above, &depth)) + 1);
    }
    for at in (0..depth.len()).rev() {
        let right = (at % width + 1 < width).then_some(at + 1);
        let below = (at / width + 1 < height).then_some(at + width);
        depth[at] = depth[at].min(outside(right, &depth).min(outside(below, &depth)) + 1);
    }
    let deepest = depth.iter().copied().max().unwrap_or(0);
    if deepest == 0 {
        return Vec::new();
    }
    let point = |at: usize| Point { x: (at % width) as u32, y: (at / width) as u32 };
    let first = depth.iter().position(|depth| *depth == deepest).map(point);
    let deep: Vec<_> = (0..depth.len()).filter(|at| depth[*at] * 3 > deepest).collect();
    let others = (1..count).map(|number| point(deep[deep.len() * number / count]));
    first.into_iter().chain(others).collect()
}

async fn prepare(pixels: &PixelPool, file: Bytes, limits: Limits) -> anyhow::Result<Known> {
    let read = move || Ok::<_, ToolError>(Known::new(Scene::new(decode(&file, &limits)?)));
    Ok(pixels.run(read).await??)
}

async fn select(models: &Models, known: &mut Known, click: Point) -> anyhow::Result<Option<Bytes>> {
    let marks = Marks { positive: vec![known.scene().reduce_point(click)], ..Marks::default() };
    Ok(models.select(known, Wanted { marks, ..Wanted::default() }).await?)
}

/// Returns the share of the union of selection and subject that both cover.
fn overlap(png: &[u8], case: &Case) -> anyhow::Result<f64> {
    let selected = image::load_from_memory(png)?.into_luma8().into_raw();
    ensure!(selected.len() == case.subject.len(), "{}: the mask has another size", case.name);
    let (mut both, mut either) = (0_u64, 0_u64);
    for (selected, subject) in selected.into_iter().map(|value| value >= 128).zip(&case.subject) {
        both += u64::from(selected && *subject);
        either += u64::from(selected || *subject);
    }
    Ok(both as f64 / either.max(1) as f64)
}
