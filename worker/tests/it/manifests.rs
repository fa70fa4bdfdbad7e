//! Manifests and loads: valid models load, invalid ones are refused with a reason.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use retouch_catalog::{Factor, Tier, Tool};
use retouch_inference::bindings::{Bindings, Demand};
use retouch_inference::device::Device;
use retouch_inference::manifest::Manifest;
use retouch_inference::registry::Registry;

use super::{altered, load, repository, runtime, tiny};
use crate::onnx::Model;

async fn refusal(folder: &Path) -> String {
    load(folder).await.expect_err("the model is refused").to_string()
}

#[test]
fn every_manifest_in_models_is_valid() {
    let models = repository().join("models");
    for name in ["u2netp", "u2net", "isnet"] {
        let manifest = Manifest::read(&models.join(name)).expect("it reads");
        assert!(manifest.commercial_use, "{name} must not serve paid jobs");
    }
    let bindings = Bindings::read(&models).expect("tools.toml reads");
    bindings.check(&models).expect("every bound model exists");
    let model = |tier| {
        let demand = Demand { tier, tool: Tool::RemoveBackground };
        bindings.model_for(demand, Device::Cpu)
    };
    assert_eq!(model(Tier::Paid), Some("isnet"));
    assert_eq!(model(Tier::Free), Some("u2netp"));
    assert_eq!(model(Tier::Visitor), Some("u2netp"));
}

#[test]
fn every_entry_of_the_shipped_tools_toml_is_reached() {
    let models = repository().join("models");
    let bindings = Bindings::read(&models).expect("tools.toml reads");
    for name in bindings.all_models() {
        let manifest = Manifest::read(&models.join(name)).expect("it reads");
        assert_eq!(bindings.problems(&manifest), Vec::<String>::new(), "{name}");
    }
}

fn upscale(largest: &str, model: &str) -> String {
    format!(
        "[[bind]]\ntool = \"upscale\"\ntier = \"paid\"\ndevice = \"cpu\"\n{largest}\nmodel = \"{model}\"\n"
    )
}

#[test]
fn a_line_with_a_size_needs_another_for_larger_pictures() {
    let parse = |text: String| Bindings::parse(&text).map(|_| ());
    let reason = parse(upscale("largest_pixels = 9", "large")).expect_err("it is refused");
    assert!(reason.contains("larger pictures for upscale:paid:2x on cpu"), "{reason}");
    let zero = upscale("largest_pixels = 0", "large") + &upscale("", "compact");
    assert!(parse(zero).expect_err("it is refused").contains("at least 1"));
    let both = upscale("largest_pixels = 9", "large") + &upscale("", "compact");
    let bindings = Bindings::parse(&both).expect("it is accepted");
    let served: Vec<_> = bindings
        .served(Device::Cpu)
        .into_iter()
        .map(|(scope, model)| format!("{scope}: {model}"))
        .collect();
    assert_eq!(
        served,
        [
            "upscale:paid:2x up to 9 pixels: large",
            "upscale:paid:2x: compact",
            "upscale:paid:4x up to 9 pixels: large",
            "upscale:paid:4x: compact",
        ]
    );
}

#[test]
fn an_entry_is_reached_only_for_sizes_that_no_earlier_one_takes() {
    let manifest = Manifest::read(&repository().join("models/tiny/upscale")).expect("it reads");
    let up_to = |pixels: u32| format!("largest_pixels = {pixels}");
    for (sizes, unreached) in [
        ([up_to(9), String::new()], None),
        ([up_to(9), up_to(10)], None),
        ([up_to(9), up_to(9)], Some(2)),
        ([String::new(), up_to(9)], Some(2)),
        ([String::new(), String::new()], Some(2)),
    ] {
        let entries = sizes.iter().map(|largest| upscale(largest, "upscale")).collect::<String>();
        // The last entry is for the sizes that are left, if any.
        let text = entries + &upscale("", "other");
        let problems = Bindings::parse(&text).expect("it is accepted").problems(&manifest);
        match unreached {
            None => assert_eq!(problems, Vec::<String>::new(), "{sizes:?}"),
            Some(number) => {
                let reason = format!("[[bind]] {number}: it is never reached");
                assert!(problems.len() == 1 && problems[0].starts_with(&reason), "{problems:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_small_picture_gets_the_model_that_is_bound_up_to_its_size() {
    let models = tempfile::tempdir().expect("a folder");
    let tiny = repository().join("models/tiny");
    for name in ["upscale", "blur-upscale"] {
        std::os::unix::fs::symlink(tiny.join(name), models.path().join(name)).expect("it links");
    }
    let both = upscale("largest_pixels = 4096", "blur-upscale") + &upscale("", "upscale");
    fs::write(models.path().join("tools.toml"), both).expect("written");
    let registry = Registry::open(models.path(), runtime()).expect("it opens");
    registry.load_all().await.expect("both load");
    assert_eq!(registry.loaded().len(), 2);
    let demand = Demand { tier: Tier::Paid, tool: Tool::Upscale(Factor::X4) };
    for (pixels, name) in [(1, "blur-upscale"), (4096, "blur-upscale"), (4097, "upscale")] {
        let model = registry.model_for_picture(demand, pixels).await.expect("it is bound");
        assert_eq!(model.identity().name, name, "{pixels} pixels");
    }
}

#[test]
fn invalid_fields_are_named() {
    for (from, to, reason) in [
        ("width = 32", "widht = 32", "widht"),
        ("task = \"segmentation\"", "task = \"painting\"", "\"painting\" is unknown"),
        ("divide_by = \"max\"", "divide_by = 0", "divide_by must be"),
        ("range = \"minmax\"", "range = \"soft\"", "soft"),
        ("file = \"segment.onnx\"", "file = \"../segment.onnx\"", "plain file name"),
        ("name = \"segment\"", "name = \"other\"", "name is \"other\", but its folder is "),
        ("std = [0.229, 0.224, 0.225]", "std = [0.0, 1.0, 1.0]", "input.std"),
        ("licence = \"Apache-2.0\"", "", "licence"),
        ("licence = ", "memory_mib = 0\nlicence = ", "expected a nonzero u32 in `memory_mib`"),
        (
            "commercial_use = true",
            "commercial_use = true\ncomercial_use = true",
            "the fields of every task are `name`",
        ),
    ] {
        let (_dir, folder) = altered("segment", &[(from, to)]);
        let error = Manifest::read(&folder).expect_err(to).to_string();
        assert!(error.contains(reason), "{to}: {error}");
    }
}

#[test]
fn contradictory_fields_are_named() {
    for (model, from, to, reason) in [
        ("flux2-klein", "guidance = 1.0", "guidance = 3.5", "sampling.guidance must be at most 1"),
        (
            "flux2-klein",
            "guidance = 1.0",
            "guidance = 1.0\nnegative_prompt = \"ugly\"",
            "sampling.negative_prompt",
        ),
        (
            "flux2-klein",
            "guidance = 1.0",
            "guidance = 1.0\nscheduler = \"unipc\"",
            "sampling.scheduler is \"unipc\", but this task has its own scheduler",
        ),
        (
            "flux2-klein",
            "[strength]",
            "[reference_image]\nremove = \"gray\"\n\n[strength]",
            "reference_image.remove is stated, but strength.remove is not",
        ),
        (
            "flux2-klein",
            "[strength]",
            "[reference_image]\nedit = \"green\"\n\n[strength]",
            "unknown variant `green`, expected one of `keep`, `gray`, `fill`",
        ),
        (
            "sd-inpaint",
            "[strength]",
            "[reference_image]\nedit = \"gray\"\n\n[strength]",
            "reference_image is for task \"flux2-klein\"",
        ),
        (
            "sd-inpaint",
            "guidance = 7.5",
            "guidance = 7.5\nscheduler = \"heun\"",
            "unknown variant `heun`, expected one of `ddim`",
        ),
        (
            "sd-inpaint",
            "edit = 1.0",
            "edit = 0.2",
            "strength.edit is 0.2, which leaves no step of 4",
        ),
        (
            "upscale",
            "memory_bytes_per_pixel = 400",
            "memory_bytes_per_pixel = 0",
            "tiling.memory_bytes_per_pixel must be above 0",
        ),
        (
            "fill-floats",
            "[canvas]",
            "[[golden]]\nimage = \"a.png\"\nexpected = \"b.png\"\n\n[canvas]",
            "[[golden]] is never compared for task \"fill\": remove it",
        ),
        (
            "sd-inpaint",
            "[strength]",
            "[[golden]]\nimage = \"a.png\"\nexpected = \"b.png\"\n\n[strength]",
            "[[golden]] is for tasks of one net: state `reference`",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join(model);
        fs::create_dir(&folder).expect("a folder");
        let text = repository().join("models/tiny").join(model).join("model.toml");
        let text = fs::read_to_string(text).expect("it can be read");
        assert!(text.contains(from), "the manifest has no {from:?}");
        fs::write(folder.join("model.toml"), text.replace(from, to)).expect("it is written");
        let error = Manifest::read(&folder).expect_err(to).to_string();
        assert!(error.contains(reason), "{to}: {error}");
    }
}

#[tokio::test]
async fn a_model_that_differs_from_its_manifest_is_refused() {
    for (from, to, reason) in [
        ("size_bytes = ", "size_bytes = 1", "checksum: segment.onnx has"),
        (
            "sha256 = \"",
            "sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\" #",
            "the manifest says 0000",
        ),
        (
            "name = \"input\"",
            "name = \"picture\"",
            "contract: the model has no input \"picture\"; its inputs are \"input\"",
        ),
        (
            "name = \"mask\"",
            "name = \"alpha\"",
            "contract: the model has no output \"alpha\"; its outputs are \"mask\", \"brightness\"",
        ),
        (
            "width = 32",
            "width = 64",
            "has shape [1, 3, 32, 32], but the manifest expects [1, 3, 32, 64]",
        ),
        (
            "tolerance = 0.004",
            "tolerance = 0.004\n[[golden]]\nimage = \"golden-alpha.png\"\nexpected = \"golden-alpha.png\"\ntolerance = 0.001",
            "golden: golden-alpha.png: the mean error is",
        ),
        (
            "expected = \"golden-alpha.png\"",
            "expected = \"golden.png\"",
            "golden: golden.png: it must be the alpha as a gray picture, not a cutout",
        ),
    ] {
        let (_dir, folder) = altered("segment", &[(from, to)]);
        let error = refusal(&folder).await;
        assert!(error.contains(reason), "{to}: {error}");
    }
}

#[tokio::test]
async fn a_safety_net_of_another_element_type_is_refused() {
    let order = "order = \"bgr\"";
    for (element, expected) in [
        ("f16", "is f32 [1, 32, 32, 3], but the manifest expects f16 [1, 32, 32, 3]"),
        ("u8", "the net gets the samples as they are: set input.mean = [0, 0, 0]"),
    ] {
        let to = format!("{order}\nelement = \"{element}\"");
        let (_dir, folder) = altered("safety", &[(order, &to)]);
        let reason = refusal(&folder).await;
        assert!(reason.contains(expected), "{element}: {reason}");
    }
}

#[tokio::test]
async fn the_message_about_a_missing_file_says_how_to_get_it() {
    let source = "[source]\nregistry = \"url\"\nurl = \"https://example.org/net.onnx\"\n\n[input]";
    for (to, advice) in [
        (source, "is missing; fetch it with `scripts/models fetch segment`"),
        ("[input]", "is missing; put the file there"),
    ] {
        let (_dir, folder) = altered("segment", &[("[input]", to)]);
        fs::remove_file(folder.join("segment.onnx")).expect("it existed");
        let error = refusal(&folder).await;
        assert!(error.contains(advice), "{advice}: {error}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_model_is_refused() {
    let (_dir, folder) = altered("segment", &[]);
    let manifest = fs::read_to_string(folder.join("model.toml")).expect("it can be read");
    let wrong = "08".repeat(266);
    let digest = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&wrong));
    let old = manifest.split("sha256 = \"").nth(1).expect("it has one")[..64].to_owned();
    fs::write(folder.join("segment.onnx"), &wrong).expect("it is written");
    fs::write(folder.join("model.toml"), manifest.replace(&old, &digest)).expect("it is written");
    let error = refusal(&folder).await;
    assert!(error.contains("open: "), "{error}");
}

#[tokio::test]
async fn external_data_is_read_from_a_file_that_the_manifest_lists() {
    let models = tempfile::tempdir().expect("a folder");
    let model = Model { external_data: Some("weights.bin".to_owned()), ..Model::new(1.0) };
    let folder = model.write(models.path(), "made");
    let weights = folder.join("weights.bin");
    assert!(refusal(&folder).await.contains("weights.bin is missing"));
    fs::write(&weights, model.weights()).expect("it is written");
    let loaded = load(&folder).await.expect("it loads");
    let input = ndarray::Array4::from_elem((1, 32, 32, 3), 255);
    let value = loaded.infer(input).await.expect("it runs").output.values()[[0, 0, 0, 0]];
    assert!((value - 1.0 / (1.0 + (-3.0_f32).exp())).abs() < 1e-5, "{value}");

    fs::write(&weights, Model::new(2.0).weights()).expect("it is written");
    assert!(refusal(&folder).await.contains("checksum: weights.bin has sha256"));

    let elsewhere = models.path().join("weights.bin");
    fs::write(&elsewhere, model.weights()).expect("it is written");
    fs::remove_file(&weights).expect("it existed");
    std::os::unix::fs::symlink(&elsewhere, &weights).expect("it links");
    let error = refusal(&folder).await;
    assert!(
        error.contains("files: weights.bin is a link that leaves the model's folder"),
        "{error}"
    );
}

#[tokio::test]
async fn external_data_in_an_unlisted_file_is_refused() {
    for (location, reason) in [
        ("/etc/hostname", "\"/etc/hostname\", which is outside the model's folder"),
        ("../weights.bin", "\"../weights.bin\", which is outside the model's folder"),
        ("a/../../b", "\"a/../../b\", which is outside the model's folder"),
        ("other.bin", "\"other.bin\", which the manifest does not list; add it as [[extra]]"),
        (
            "weights/w.bin",
            "\"weights/w.bin\", which is not a plain file name; export it with its data beside it",
        ),
        ("./w.bin", "\"./w.bin\", which is not a plain file name"),
        // ONNX Runtime's marker for an address in its own memory.
        ("*/_ORT_MEM_ADDR_/*", "which is not a plain file name"),
    ] {
        let models = tempfile::tempdir().expect("a folder");
        let model = Model { external_data: Some(location.to_owned()), ..Model::new(1.0) };
        let listed = Model { external_data: None, ..model.clone() };
        let folder = model.write(models.path(), "made");
        let manifest = listed.manifest("made").replace(&listed.sha256(), &model.sha256());
        let (size, stated) = (model.bytes().len(), listed.bytes().len());
        let manifest =
            manifest.replace(&format!("size_bytes = {stated}"), &format!("size_bytes = {size}"));
        fs::write(folder.join("model.toml"), manifest).expect("it is written");
        let error = refusal(&folder).await;
        assert!(error.contains("files: made.onnx keeps tensors in"), "{location}: {error}");
        assert!(error.contains(reason), "{location}: {error}");
    }
}

#[test]
fn the_identity_of_a_model_covers_all_of_its_weights() {
    let models = tempfile::tempdir().expect("a folder");
    let identity = |model: &Model| {
        let folder = model.write(models.path(), "made");
        Manifest::read(&folder).expect("it reads").sha256()
    };
    let one = Model::new(1.0);
    assert_eq!(identity(&one), one.sha256());
    let external = Model { external_data: Some("weights.bin".to_owned()), ..one };
    let retrained = Model { weight: 2.0, ..external.clone() };
    assert_eq!(external.bytes(), retrained.bytes(), "the weights are in the other file");
    assert_ne!(identity(&external), identity(&retrained));
}

#[tokio::test]
async fn a_large_file_may_be_a_link() {
    let models = tempfile::tempdir().expect("a folder");
    let folder = Model::new(1.0).write(&models.path().join("models"), "made");
    let (here, elsewhere) = (folder.join("made.onnx"), models.path().join("large.onnx"));
    fs::rename(&here, &elsewhere).expect("it moves");
    std::os::unix::fs::symlink(&elsewhere, &here).expect("it links");
    load(&folder).await.expect("it loads");
}

#[tokio::test]
async fn concurrent_callers_share_one_load() {
    let registry = Registry::open(&repository().join("models/tiny"), runtime()).expect("it opens");
    assert!(registry.loaded().is_empty());
    let registry = Arc::new(registry);
    let loads = (0..8).map(|_| {
        let registry = Arc::clone(&registry);
        let demand = Demand { tier: Tier::Paid, tool: Tool::RemoveBackground };
        tokio::spawn(async move { registry.model_for(demand).await.expect("it loads") })
    });
    for load in loads.collect::<Vec<_>>() {
        load.await.expect("no panic");
    }
    let threads = fs::read_dir("/proc/self/task").expect("Linux").flatten().filter(|task| {
        fs::read_to_string(task.path().join("comm"))
            .is_ok_and(|name| name.trim() == "model-segment")
    });
    // Other tests in this process may have one thread each; eight callers must not start eight.
    assert!(threads.count() < 8);
    assert_eq!(registry.loaded().len(), 1);
}

#[tokio::test]
async fn every_demand_finds_its_model() {
    let registry = Registry::open(&repository().join("models/tiny"), runtime()).expect("it opens");
    for tier in Tier::ALL {
        let demand = Demand { tier, tool: Tool::RemoveBackground };
        let model = registry.model_for(demand).await.expect("it is bound");
        assert_eq!(model.identity().name, "segment");
    }
    // Fourfold upscales are never free.
    let unbound = Demand { tier: Tier::Free, tool: Tool::Upscale(Factor::X4) };
    let served = registry.served();
    assert!(served.iter().all(|(scope, _)| scope.demand != unbound), "{served:?}");
    assert_eq!(served.len(), 3 + 4 + 4, "{served:?}");
}

#[tokio::test]
async fn the_request_of_a_caller_that_left_is_skipped() {
    let model = tiny().await;
    let shape = (1, 32, 32, 3);
    drop(model.infer(ndarray::Array4::zeros(shape)));
    let inference = model.infer(ndarray::Array4::zeros(shape)).await.expect("it runs");
    assert_eq!(inference.output.shape(), [1, 1, 32, 32]);
}

#[test]
fn a_model_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let models = repository().join("models/tiny");
    let said = Manifest::read(&models.join("segmnet")).expect_err("it is misspelled").to_string();
    assert!(said.contains("segmnet: there is no such model, only "), "{said}");
    assert!(said.contains("segment, ") && said.contains("upscale"), "{said}");
}
