//! Files that were made to hurt, and a decoder that does not end.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use retouch_heif::{Header, Heif, HeifConfig};
use retouch_pixels::{Limits, PixelError};

use crate::{config, convert, picture};

fn header(file: &[u8]) -> Result<Header, PixelError> {
    Header::read(file, &Limits::default())
}

/// Returns where the contents of the first box of a kind start.
fn contents_of(file: &[u8], kind: &[u8]) -> usize {
    file.windows(4).position(|window| window == kind).unwrap() + 4
}

fn is_refused(outcome: &Result<Bytes, PixelError>) -> bool {
    matches!(outcome, Err(PixelError::Unreadable(_) | PixelError::Foreign(_)))
}

#[test]
fn sizes_are_checked_before_anything_is_decoded() {
    let mut file = picture("phone.heic");
    let size = contents_of(&file, b"ispe") + 4;
    let mut with_width = |width: u32| {
        file[size..size + 4].copy_from_slice(&width.to_be_bytes());
        header(&file)
    };
    // The picture is rotated, so this is its height.
    assert!(matches!(with_width(60_000), Err(PixelError::TooLarge { height: 60_000, .. })));
    assert!(matches!(with_width(u32::MAX), Err(PixelError::TooLarge { .. })));
    assert!(matches!(with_width(0), Err(PixelError::Unreadable(_))));
}

#[test]
fn memory_is_reserved_for_what_is_decoded_before_cropping() {
    let cropped = picture("mirrored.heic");
    let size = contents_of(&cropped, b"ispe") + 4;
    let of_side = |side: u32| {
        let mut file = cropped.clone();
        file[size..size + 4].copy_from_slice(&side.to_be_bytes());
        file[size + 4..size + 8].copy_from_slice(&side.to_be_bytes());
        header(&file)
    };
    let large = of_side(20_000).unwrap();
    assert_eq!((large.width, large.height), (64, 48));
    let pixels = 20_000_u64 * 20_000;
    let more = large.convert_bytes() - of_side(64).unwrap().convert_bytes();
    assert!((8 * pixels..=16 * pixels).contains(&more), "{more}");
    // The decoder would refuse it, too.
    assert!(matches!(of_side(u32::MAX), Err(PixelError::TooLarge { width: u32::MAX, .. })));
    assert!(matches!(of_side(0), Err(PixelError::Unreadable(_))));
}

fn boxed(kind: [u8; 4], contents: &[&[u8]]) -> Vec<u8> {
    let contents = contents.concat();
    [&(contents.len() as u32 + 8).to_be_bytes(), &kind[..], &contents].concat()
}

/// A file whose first item is Exif, with these contents of `iloc`.
fn with_places(places: &[u8]) -> Vec<u8> {
    let entry = boxed(*b"infe", &[&[2, 0, 0, 0, 0, 1, 0, 0], b"Exif\0"]);
    let items = boxed(*b"iinf", &[&[0, 0, 0, 0, 0, 1], &entry]);
    let meta = boxed(*b"meta", &[&[0; 4], &items, &boxed(*b"iloc", &[places])]);
    [boxed(*b"ftyp", &[b"heic\0\0\0\0mif1"]), meta].concat()
}

#[test]
fn places_that_take_no_bytes_take_no_time_either() {
    // Items after the wanted one, each with 65,535 pieces whose start and length have no bytes.
    let mut places = vec![0, 0, 0, 0, 0x00, 0x00, 0xff, 0xff];
    places.extend([0, 2, 0, 0, 0xff, 0xff].repeat(0xffff));
    let mut long = vec![2, 0, 0, 0, 0x00, 0x00, 0, 4, 0, 0];
    long.extend([0, 0, 0, 2, 0, 0, 0, 0, 0xff, 0xff].repeat(0x4_0000));
    for places in [places, long] {
        let started = Instant::now();
        assert_eq!(retouch_heif::exif(&with_places(&places)), None);
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    }
}

#[test]
fn places_of_versions_to_come_are_not_guessed() {
    // One item in one piece. Its block follows the other boxes.
    let with_version = |version: u8| {
        let places = |start: u32| {
            let head = [version, 0, 0, 0, 0x44, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
            [&head[..], &start.to_be_bytes(), &18_u32.to_be_bytes()].concat()
        };
        let start = with_places(&places(0)).len() as u32;
        let block = b"\0\0\0\0II*\0\x08\0\0\0\0\0\0\0\0\0";
        retouch_heif::exif(&[&with_places(&places(start))[..], block].concat())
    };
    assert!(with_version(2).is_some());
    assert_eq!(with_version(3), None);
}

#[test]
fn headers_of_any_bytes_are_read_or_refused() {
    for name in ["single.heic", "phone.heic", "mirrored.heic", "alpha.avif"] {
        let whole = picture(name);
        let data = contents_of(&whole, b"mdat");
        // Without the head of its data, a file looks whole; the decoder misses the rest.
        for end in (0..data - 8).chain(data..whole.len()) {
            assert!(header(&whole[..end]).is_err(), "{name} up to {end}");
        }
        let mut state = 1_u32;
        for _ in 0..20_000 {
            let mut file = whole.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (state >> 8) as usize % file.len();
                file[at] = state as u8;
            }
            let _ = header(&file);
        }
    }
    // A box that never ends within another, and one that is shorter than its own head.
    let endless = b"\0\0\0\x14ftypheic\0\0\0\0mif1\0\0\0\0meta\0\0\0\0\0\0\0\0iprp";
    assert!(matches!(header(endless), Err(PixelError::Unreadable(_))));
    let short = b"\0\0\0\x14ftypheic\0\0\0\0mif1\0\0\0\x04meta";
    assert!(matches!(header(short), Err(PixelError::Unreadable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_refused_and_never_end_the_caller() {
    for name in ["single.heic", "single.avif", "phone.heic"] {
        let whole = picture(name);
        // The boxes stay whole, the coded data does not.
        let mut file = whole.clone();
        let data = contents_of(&file, b"mdat");
        let rest = file.len();
        file[data..rest].fill(0x5a);
        assert!(is_refused(&convert(&file).await), "{name}");
        for at in (20..whole.len()).step_by(whole.len() / 12) {
            let mut file = whole.clone();
            file[at] ^= 0xff;
            let outcome = convert(&file).await;
            let is_expected = match &outcome {
                Ok(_) | Err(PixelError::TooLarge { .. } | PixelError::UnsupportedFormat) => true,
                refused => is_refused(&refused.clone()),
            };
            assert!(is_expected, "{name} with byte {at} changed: {outcome:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grid_that_is_larger_than_it_says_meets_the_limit_of_memory() {
    let mut file = picture("phone.heic");
    // The grid's own size, which the size of the item does not repeat.
    let grid = file.windows(8).position(|bytes| bytes == [0, 0, 1, 1, 0, 100, 0, 90]).unwrap();
    file[grid + 2..grid + 4].fill(0xff);
    file[grid + 4..grid + 8].fill(0xff);
    let started = Instant::now();
    assert!(is_refused(&convert(&file).await));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_decoder_can_do_nothing_but_compute() {
    let started = Instant::now();
    let mut escape = Command::new(config().picture_decoder.unwrap());
    let ended = escape.arg("escape").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "end\n", "{said}");
    // It spends its second of processor time, and no more.
    assert_eq!(ended.status.code(), None, "{}", ended.status);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn arguments_that_are_not_unicode_start_no_decoder() {
    let name = OsStr::from_bytes(b"caf\xe9.jpg");
    let run = OsStr::new("run");
    for arguments in [&[name][..], &[run, name], &[OsStr::new("decode-picture"), name, name]] {
        let mut program = Command::new(config().picture_decoder.unwrap());
        let ended = program.args(arguments).stdin(Stdio::null()).output().unwrap();
        // The program goes on to read the arguments for itself, and these tests' has no other use for them.
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{arguments:?}: {ended:?}");
    }
}

/// Decodes with a shell script.
fn scripted(folder: &Path, text: &str) -> Heif {
    let script = folder.join("script");
    let mut file = fs::File::create(&script).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o700)).unwrap();
    drop(file);
    Heif::new(&HeifConfig { picture_decoder: Some(script), ..config() }).unwrap()
}

/// A decoder that takes its input, says which process it is, and never ends.
fn stuck(folder: &Path) -> (Heif, PathBuf) {
    let id = folder.join("id");
    let text = format!(
        "#!/bin/sh\nif [ \"$3\" = probe ]; then printf '1 true true'; exit 0; fi\n\
         echo $$ > {}\nexec sleep 600\n",
        id.display()
    );
    (scripted(folder, &text), id)
}

async fn is_gone(id: &Path) -> bool {
    let process = fs::read_to_string(id).unwrap().trim().to_owned();
    for _ in 0..200 {
        let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // Nobody needs to have collected it yet.
        if state.is_empty() || state.contains(") Z ") {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn a_probe_that_was_killed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let text = format!(
        "#!/bin/sh\nif [ -e {0} ]; then printf '1 true true'; exit 0; fi\n: > {0}\nkill -9 $$\n",
        first.display()
    );
    let heif = scripted(folder.path(), &text);
    let killed = heif.support().await;
    assert!(!killed.heic && killed.detail.ends_with("ended by signal 9"), "{killed:?}");
    let support = heif.support().await;
    assert!(support.heic && support.avif, "{support:?}");
    // The answer is remembered.
    fs::remove_file(first).unwrap();
    assert_eq!(heif.support().await, support);
}

#[tokio::test]
async fn a_decoder_that_does_not_end_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (heif, id) = stuck(folder.path());
    let heif = heif.with_patience(Duration::from_millis(500));
    let file = picture("single.heic");
    let outcome = heif.convert(file.clone().into(), &header(&file).unwrap()).await;
    assert!(matches!(&outcome, Err(PixelError::Unreadable(why)) if why.contains("time")));
    assert!(is_gone(&id).await);
}

#[tokio::test]
async fn a_decoder_ends_with_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let (heif, id) = stuck(folder.path());
    let file = picture("single.heic");
    let read = header(&file).unwrap();
    let hung_up = tokio::select! {
        _ = heif.convert(file.into(), &read) => false,
        () = async {
            while !id.exists() || fs::read_to_string(&id).unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } => true,
    };
    assert!(hung_up && is_gone(&id).await);
}
