//! Prints the processor time of each pixel stage of a cutout, and its wall time on all threads:
//! `cargo run --release --example stages -- PHOTO [MAP_SIDE]`. A synthetic map takes the place of a model's.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use ndarray::Array4;
use retouch_pixels::Limits;
use retouch_pixels::alpha::{Inside, MapRange, Reading, to_alpha};
use retouch_pixels::decode::decode;
use retouch_pixels::encode::Channels;
use retouch_pixels::foreground::EdgeColors;
use retouch_pixels::framing::Framing;
use retouch_pixels::preview::Preview;
use retouch_pixels::result::encode;
use retouch_pixels::tensor::to_bytes;

const ROUNDS: usize = 15;

/// What a stage took in each round, in milliseconds: processor time and wall time.
#[derive(Default)]
struct Stage(Vec<(f64, f64)>);

impl Stage {
    fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (started, cpu) = (Instant::now(), cpu_ms());
        let made = black_box(work());
        self.0.push((cpu_ms() - cpu, started.elapsed().as_secs_f64() * 1e3));
        made
    }

    fn medians(&self) -> (f64, f64) {
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let (cpu, wall) = self.0.iter().copied().unzip();
        (median(cpu), median(wall))
    }
}

/// Returns the processor time of all threads, in milliseconds.
fn cpu_ms() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").expect("this is Linux").flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e6
}

/// A subject with a wavy, soft edge on a third of the map.
fn map(side: usize) -> Array4<f32> {
    Array4::from_shape_fn((1, 1, side, side), |(_, _, y, x)| {
        let place = |at: usize| (at as f32 + 0.5) / side as f32 - 0.5;
        let (x, y) = (place(x), place(y) - 0.05);
        let angle = y.atan2(x);
        let radius = 0.33 + 0.04 * (3.0 * angle).sin() + 0.008 * (40.0 * angle).sin();
        // A net is never quite certain.
        ((radius - x.hypot(y)) * 150.0 + 0.5).clamp(0.0005, 0.9995)
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a photo");
    let cells = arguments.next().map_or(1024, |cells| cells.parse().expect("a number"));
    let file = Bytes::from(fs::read(file).expect("a file"));
    let map = map(cells);
    let input = (cells as u32, cells as u32);

    let names = ["decode", "preprocess", "postprocess", "edge colors", "encode", "of it: preview"];
    let mut stages: [Stage; 6] = Default::default();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let [decoding, preprocessing, postprocessing, estimating, encoding, previewing] =
            &mut stages;
        let picture = decoding.run(|| decode(&file, &Limits::default()).expect("a picture"));
        let framing = Framing::Stretch;
        let seen = preprocessing.run(|| to_bytes(&picture, input, framing));
        let frame = framing.frame((picture.width, picture.height), input);
        let alpha = postprocessing.run(|| {
            let reading = Reading { range: MapRange::Clip, channel: 0 };
            to_alpha(&map, reading, Inside::Opaque, &frame, &picture, &seen).expect("alpha")
        });
        let colors = estimating.run(|| EdgeColors::estimate(&picture, &alpha));
        let size = (picture.width, picture.height);
        let (png, copies) = encoding.run(|| {
            encode(size, Channels::Rgba, None, |rows, out| {
                colors.cut_out(&picture, &alpha, rows, out);
            })
            .expect("it encodes")
        });
        bytes = png.len();
        let cut = decode(&png, &Limits::default()).expect("a cutout");
        if copies.preview.is_some() {
            previewing.run(|| Preview::of(&cut).expect("it encodes"));
        }
    }
    let mut sums = (0.0, 0.0);
    println!("{:<16} {:>8} {:>8}", "ms (median)", "CPU", "wall");
    for (name, stage) in names.iter().zip(&stages).filter(|(_, stage)| !stage.0.is_empty()) {
        let (cpu, wall) = stage.medians();
        println!("{name:<16} {cpu:>8.1} {wall:>8.1}");
        if !name.starts_with("of it") {
            sums = (sums.0 + cpu, sums.1 + wall);
        }
    }
    println!("{:<16} {:>8.1} {:>8.1}", "together", sums.0, sums.1);
    println!("the PNG takes {bytes} bytes");
}
