//! `retouch-worker run` on folders, streams and formats.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use image::DynamicImage;
use image::ImageFormat::{Jpeg, Png, WebP};
use tempfile::TempDir;

use crate::process::picture;
use crate::repository;

fn command(tool: &str, model: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retouch-worker"));
    command
        .args(["run", tool, "--device", "cpu", "--model", model])
        .env("RETOUCH_MODELS_DIR", repository().join("models/tiny"))
        .env("ORT_DYLIB_PATH", repository().join(".retouch/onnxruntime/libonnxruntime.so.1.31.1"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: &Output) -> String {
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}

fn open(path: &Path) -> DynamicImage {
    image::load_from_memory(&fs::read(path).unwrap()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder `in` with two pictures, one of them in a subfolder, and a broken one.
fn input() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("in/deep")).unwrap();
    fs::write(at("in/one.png"), picture(90, 60)).unwrap();
    fs::write(at("in/deep/two.png"), picture(60, 90)).unwrap();
    fs::write(at("in/broken.jpg"), b"no picture").unwrap();
    fs::write(at("in/notes.txt"), b"no picture either").unwrap();
    dir
}

#[test]
fn a_silent_pipe_does_not_hold_up_an_interrupt() {
    let dir = tempfile::tempdir().unwrap();
    // The order in which signals and input are polled is random.
    for _ in 0..4 {
        let mut command = command("remove-bg", "segment");
        command.args(["-", "-o", "out.png"]).current_dir(dir.path());
        let piped = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut process = piped.spawn().unwrap();
        let _silent = process.stdin.take().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while process.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                process.kill().unwrap();
                panic!("the interrupt had no effect");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = process.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    }
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn heic_is_read_and_what_the_camera_wrote_stays_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let photo = repository().join("heif/tests/pictures/phone.heic");
    for (name, metadata, keeps) in
        [("a.png", "strip", false), ("b.png", "keep", true), ("c.jpg", "keep", true)]
    {
        let mut command = command("remove-bg", "segment");
        command.current_dir(dir.path()).arg(&photo).args(["-o", name, "--metadata", metadata]);
        succeeded(&command.output().unwrap());
        let file = dir.path().join(name);
        let size = (open(&file).width(), open(&file).height());
        assert_eq!(size, (90, 100), "{name} is upright");
        let exif = retouch_pixels::exif::Exif::of(&fs::read(&file).unwrap());
        assert_eq!(exif.is_some(), keeps, "{name}");
    }
    let without = command("remove-bg", "segment")
        .current_dir(dir.path())
        .arg(&photo)
        .args(["-o", "d.png", "--heif-library", "libabsent.so"])
        .output()
        .unwrap();
    assert!(text(&without.stderr).contains("HEIC files cannot be read here"), "{without:?}");
    assert!(!dir.path().join("d.png").exists());
}

#[test]
fn a_file_that_is_no_picture_is_refused_in_the_terms_of_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    for (name, file, expected) in [
        (
            "notes.txt",
            "no picture",
            "the image cannot be read: it is not a PNG, JPEG, WebP, HEIC or AVIF file",
        ),
        ("a.svg", "<svg/>", "This is a drawing (SVG). Export it as PNG."),
        (
            "a.pdf",
            "%PDF-1.7",
            "This is a document (PDF). Export the page that you want as JPEG or PNG.",
        ),
    ] {
        fs::write(dir.path().join(name), file).unwrap();
        let mut command = command("remove-bg", "segment");
        let refused =
            command.current_dir(dir.path()).args([name, "-o", "out.png"]).output().unwrap();
        let said = text(&refused.stderr);
        assert!(
            !refused.status.success() && said.contains(&format!("{name}: {expected}")),
            "{said}"
        );
        assert!(!said.contains("upload"), "{said}");
    }
}

#[test]
fn one_broken_picture_fails_the_command_but_not_the_others() {
    let dir = input();
    let run = |more: &[&str]| {
        let mut command = command("remove-bg", "segment");
        command.current_dir(dir.path()).args(["in", "-o", "out", "--recursive"]).args(more);
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, lines, log) = run(&[]);
    assert_eq!(status, Some(1), "{log}");
    assert!(lines.contains("out/one.png  90 × 60, "), "{lines}");
    assert!(lines.contains("out/deep/two.png  60 × 90, "), "{lines}");
    assert!(log.contains("in/broken.jpg: the image cannot be read"), "{log}");
    assert!(log.contains("2 of 3 pictures done in "), "{log}");
    assert!(log.contains("\nfailed: in/broken.jpg\n"), "{log}");
    assert!(log.ends_with("retouch-worker: 1 of 3 pictures failed\n"), "{log}");
    assert_eq!(names(&dir.path().join("out")), ["deep", "one.png"]);
    let cut = open(&dir.path().join("out/one.png")).into_rgba8();
    assert!(cut.get_pixel(45, 30)[3] > 245 && cut.get_pixel(2, 2)[3] < 10);

    fs::remove_file(dir.path().join("in/broken.jpg")).unwrap();
    let (status, lines, log) = run(&["--skip-existing"]);
    assert_eq!((status, lines.as_str()), (Some(0), ""), "{log}");
    assert!(log.contains("0 of 0 pictures done") && log.contains("2 left out"), "{log}");
}

#[test]
fn every_format_has_the_same_picture_and_a_background_fills_what_is_transparent() {
    let dir = input();
    let run = |name: &str, more: &[&str]| {
        let mut command = command("remove-bg", "segment");
        command.current_dir(dir.path()).args(["in/one.png", "-o", name]).args(more);
        succeeded(&command.output().unwrap());
        let bytes = fs::read(dir.path().join(name)).unwrap();
        (image::guess_format(&bytes).unwrap(), image::load_from_memory(&bytes).unwrap())
    };
    let (format, png) = run("cut.png", &[]);
    assert_eq!(format, Png);
    let (format, webp) = run("cut.webp", &["--quality", "100"]);
    assert_eq!((format, webp.to_rgba8()), (WebP, png.to_rgba8()));
    let (format, jpg) = run("cut.jpg", &[]);
    assert_eq!(format, Jpeg);
    assert!(jpg.to_rgb8().get_pixel(2, 2).0.iter().all(|sample| *sample > 250), "white");
    let (_, red) = run("red.png", &["--background", "#f00"]);
    let [r, g, b, a] = red.to_rgba8().get_pixel(2, 2).0;
    assert!(r == 255 && g < 10 && b < 10 && a == 255, "{r} {g} {b} {a}");
    let (_, mask) = run("mask.png", &["--only-mask"]);
    assert_eq!(mask.color(), image::ColorType::L8);
    let mask = mask.into_luma8();
    assert!(mask.get_pixel(45, 30)[0] > 245 && mask.get_pixel(2, 2)[0] < 10);
}

#[test]
fn a_result_that_its_format_cannot_hold_is_refused_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("strip.png"), picture(4100, 2)).unwrap();
    let mut command = command("upscale", "upscale");
    command.current_dir(dir.path()).args(["strip.png", "-o", "out.webp", "--factor", "4"]);
    let output = command.output().unwrap();
    let log = text(&output.stderr);
    assert!(!output.status.success());
    let refusal = "strip.png: the result would be 16400 × 8 pixels, and a .webp holds at most 16383 per \
                   side; add --format png";
    assert!(log.contains(refusal), "{log}");
    assert_eq!(names(dir.path()), ["strip.png"]);
}

#[test]
fn a_fix_has_the_format_that_its_name_says() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("in.png"), picture(160, 120)).unwrap();
    fs::write(dir.path().join("mask.png"), crate::magic_fix::disc(160, 120, 16)).unwrap();
    let run = |name: &str, more: &[&str]| {
        let mut command = fix(dir.path(), "a red circle");
        command.args(["in.png", "-o", name]).args(more).output().unwrap()
    };
    for (name, more, format) in [
        ("a.png", &[][..], Png),
        ("a.jpg", &[], Jpeg),
        ("a.webp", &[], WebP),
        ("a.gif", &["--format", "jpg"], Jpeg),
    ] {
        succeeded(&run(name, more));
        let file = fs::read(dir.path().join(name)).unwrap();
        assert_eq!(image::guess_format(&file).unwrap(), format, "{name}");
        let xmp = b"compositeWithTrainedAlgorithmicMedia";
        assert!(file.windows(xmp.len()).any(|window| window == xmp), "{name} is marked");
    }
    let refused = run("b.gif", &[]);
    assert!(text(&refused.stderr).contains("cannot write a .gif"), "{refused:?}");
    assert!(!dir.path().join("b.gif").exists());
}

/// Returns a fix of `mask.png` in a folder.
fn fix(folder: &Path, prompt: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retouch-worker"));
    command
        .current_dir(folder)
        .args(["run", "fix", "--mask", "mask.png", "--prompt", prompt, "--device", "cpu"])
        .env("RETOUCH_MODELS_DIR", repository().join("models/tiny"))
        .env("ORT_DYLIB_PATH", repository().join(".retouch/onnxruntime/libonnxruntime.so.1.31.1"));
    command
}

#[test]
fn one_mask_serves_a_folder_and_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mask.png"), crate::magic_fix::disc(160, 120, 16)).unwrap();
    fs::write(dir.path().join("one.png"), picture(160, 120)).unwrap();
    fs::write(dir.path().join("two.png"), picture(320, 240)).unwrap();
    fs::write(dir.path().join("odd.png"), picture(100, 120)).unwrap();
    let output = fix(dir.path(), "remove it").args([".", "-o", "out"]).output().unwrap();
    let log = text(&output.stderr);
    assert!(!output.status.success() && log.contains("2 of 3 pictures done"), "{log}");
    let refusal = "odd.png: mask.png: The mask is 160 × 120 pixels";
    assert!(log.contains(refusal), "{log}");
    assert_eq!(names(&dir.path().join("out")), ["one.png", "two.png"]);
    assert_eq!(open(&dir.path().join("out/two.png")).to_rgb8().dimensions(), (320, 240));

    let mut command = fix(dir.path(), "remove it");
    command.args(["-", "-o", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&picture(160, 120)).unwrap();
    let output = child.wait_with_output().unwrap();
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert_eq!(output.stdout, fs::read(dir.path().join("out/one.png")).unwrap());
    assert!(log.contains("mode        remove"), "{log}");
}

#[test]
fn a_picture_goes_through_standard_input_and_output() {
    let mut command = command("upscale", "upscale");
    command.args(["-", "-o", "-", "--factor", "2"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&picture(40, 30)).unwrap();
    let output = child.wait_with_output().unwrap();
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert_eq!(image::load_from_memory(&output.stdout).unwrap().to_rgb8().dimensions(), (80, 60));
    assert!(log.starts_with("-  80 × 60, "), "{log}");
}

#[test]
fn many_upscales_are_converted_and_keep_their_order_of_folders() {
    let dir = input();
    fs::remove_file(dir.path().join("in/broken.jpg")).unwrap();
    let mut command = command("upscale", "upscale");
    command.current_dir(dir.path()).args(["in", "-ro", "out", "--factor", "2"]);
    let said = succeeded(&command.args(["--format", "jpg", "--in-flight", "3"]).output().unwrap());
    assert!(said.contains("2 of 2 pictures done"), "{said}");
    assert_eq!(open(&dir.path().join("out/one.jpg")).to_rgb8().dimensions(), (180, 120));
    assert_eq!(open(&dir.path().join("out/deep/two.jpg")).to_rgb8().dimensions(), (120, 180));
}

#[test]
fn a_model_that_does_not_load_fails_once() {
    let dir = input();
    let mut command = command("remove-bg", "absent");
    let output = command.current_dir(dir.path()).args(["in", "-ro", "out"]).output().unwrap();
    let log = text(&output.stderr);
    assert!(!output.status.success() && log.matches("absent").count() <= 2, "{log}");
    assert!(!log.contains("pictures done"), "{log}");
}

#[test]
fn a_link_to_a_folder_above_is_no_subfolder() {
    let dir = input();
    fs::remove_file(dir.path().join("in/broken.jpg")).unwrap();
    for name in ["again", "once-more"] {
        std::os::unix::fs::symlink(".", dir.path().join("in").join(name)).unwrap();
    }
    let mut command = command("remove-bg", "segment");
    let out = dir.path().join("out");
    command.arg("--recursive").arg(dir.path().join("in")).arg("-o").arg(&out);
    succeeded(&command.output().unwrap());
    assert_eq!(
        (names(&out), names(&out.join("deep"))),
        (vec!["deep".into(), "one.png".into()], vec!["two.png".into()])
    );
}

#[test]
fn a_closed_pipe_leaves_no_unfinished_files() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..12 {
        fs::write(dir.path().join(format!("{n}.png")), picture(900 + n, 600)).unwrap();
    }
    let out = dir.path().join("out");
    let mut command = command("remove-bg", "segment");
    command.arg(dir.path()).arg("-o").arg(&out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    drop(running.stdout.take());
    let ended = running.wait_with_output().unwrap();
    assert!(!ended.status.success());
    let files = names(&out);
    assert!(files.iter().all(|name| !name.starts_with('.')), "{files:?}");
    assert!(files.len() < 12, "it went on");
}
