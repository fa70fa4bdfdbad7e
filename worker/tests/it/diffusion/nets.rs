//! Nets that a pipeline takes or refuses, made here node by node.

use super::*;

#[test]
fn unsupported_nets_are_refused() {
    let sample = |channels| Tensor::floats("sample", &[1, channels, 8, 8]);
    let states = Tensor::floats("encoder_hidden_states", &[1, 77, 32]);
    let timestep = Tensor { name: "timestep", element: INT64, shape: vec![] };
    let unet = |inputs: &[Tensor]| net(inputs, &Tensor::floats("out_sample", &[1, 4, 8, 8]));
    let pixels = Tensor::floats("sample", &[1, 3, 64, 64]);
    let replaced = [
        (
            "unet",
            unet(&[sample(4), timestep.clone(), states.clone()]),
            "unet: takes 4 channels, so it was not trained with a mask",
        ),
        ("unet", unet(&[sample(8), timestep.clone(), states.clone()]), "unet: takes 8 channels"),
        (
            "unet",
            unet(&[
                sample(9),
                timestep.clone(),
                states.clone(),
                Tensor::floats("text_embeds", &[1, 8]),
                Tensor::floats("time_ids", &[1, 6]),
            ]),
            "text_encoder_2: is missing: the UNet takes the `text_embeds` of SDXL",
        ),
        (
            "unet",
            unet(&[
                sample(9),
                timestep.clone(),
                states.clone(),
                Tensor::floats("text_embeds", &[1, 8]),
            ]),
            "unet: has no `time_ids`, which goes with `text_embeds`, input",
        ),
        (
            "unet",
            unet(&[
                sample(9),
                timestep.clone(),
                states.clone(),
                Tensor::floats("text_embeds", &[1, 8]),
                Tensor::floats("time_ids", &[1, 5]),
            ]),
            "unet: takes 5 `time_ids`",
        ),
        (
            "unet",
            unet(&[sample(9), timestep, states, Tensor::floats("mid_block_residual", &[1, 8])]),
            "unet: requires the unknown input `mid_block_residual`",
        ),
        (
            "vae_encoder",
            net(&[pixels], &Tensor::floats("latent_sample", &[1, 4, 8, 8])),
            "vae_encoder: returns `latent_sample`, latents that the graph samples itself, so that a seed would not give \
             the same picture twice. Convert it to `latent_parameters`, mean and variance: models/convert/moments.py",
        ),
        ("text_encoder", b"no model".to_vec(), "text_encoder: "),
    ];
    for (part, bytes, reason) in replaced {
        let model = copy(&sd());
        fs::write(model.path().join(part).join("model.onnx"), bytes).unwrap();
        assert_refused(model.path(), reason);
    }
}

#[test]
fn incomplete_models_of_sdxl_are_refused() {
    let model = copy(&sdxl());
    let second = model.path().join("text_encoder_2");
    let states = fs::read(second.join("model.onnx")).unwrap();
    // The hidden states that the pipeline of SD uses, which are others.
    let ids = Tensor { name: "input_ids", element: INT64, shape: vec![1, 77] };
    let last = net(&[ids], &Tensor::floats("last_hidden_state", &[1, 77, 12]));
    fs::write(second.join("model.onnx"), last).unwrap();
    assert_refused(model.path(), "text_encoder_2: returns no `hidden_states.2`");
    fs::write(second.join("model.onnx"), states).unwrap();

    let index = model.path().join("model_index.json");
    let text = fs::read_to_string(&index).unwrap();
    let refiner = text
        .replace(r#""requires_aesthetics_score": false"#, r#""requires_aesthetics_score": true"#);
    fs::write(&index, refiner).unwrap();
    assert_refused(model.path(), "a refiner of SDXL");
    fs::write(&index, text).unwrap();

    let config = model.path().join("vae_decoder/config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("scaling_factor", "scaling")).unwrap();
    assert_refused(model.path(), "vae_decoder: config.json states no `scaling_factor`");
    fs::write(&config, text).unwrap();

    fs::remove_dir_all(&second).unwrap();
    assert_refused(model.path(), "text_encoder_2: is missing");

    let model = copy(&sd());
    fs::create_dir(model.path().join("text_encoder_2")).unwrap();
    assert_refused(model.path(), "text_encoder_2: is not used");
}

/// The types of other exporters: half precision, 32-bit ids, a timestep in an array, guidance as an input. The nets only
/// return zeros, but ONNX Runtime refuses inputs of the wrong type or shape.
#[test]
fn inputs_are_cast_to_the_types_of_the_net() {
    let half = |name, shape: &[u8]| Tensor { name, element: FLOAT16, shape: shape.to_vec() };
    let states = half("encoder_hidden_states", &[1, 77, 32]);
    let ids = Tensor { name: "input_ids", element: INT32, shape: vec![1, 77] };
    let timestep = Tensor { name: "timestep", element: FLOAT16, shape: vec![1] };
    let unet = [half("sample", &[1, 9, 8, 8]), timestep, states, half("timestep_cond", &[1, 32])];
    let made = [
        ("text_encoder", net(&[ids], &half("hidden", &[1, 77, 32]))),
        ("unet", net(&unet, &half("out_sample", &[1, 4, 8, 8]))),
        (
            "vae_encoder",
            net(&[half("sample", &[1, 3, 64, 64])], &half("parameters", &[1, 8, 8, 8])),
        ),
        ("vae_decoder", net(&[half("latents", &[1, 4, 8, 8])], &half("picture", &[1, 3, 64, 64]))),
    ];
    let folder = copy(&sd());
    for (part, bytes) in made {
        fs::write(folder.path().join(part).join("model.onnx"), bytes).unwrap();
    }
    let mut model = SdInpaint::open(folder.path(), &runtime()).unwrap();
    let image = paint(&mut model, &request("a red flower"), 1).unwrap().image;
    assert!(image.iter().all(|sample| (sample - 0.5).abs() < 1e-6));
}

#[test]
fn the_missing_file_of_an_incomplete_model_is_named() {
    for file in [
        "model_index.json",
        "scheduler/scheduler_config.json",
        "unet/model.onnx",
        "vae_encoder/model.onnx",
        "vae_decoder/model.onnx",
        "text_encoder/model.onnx",
    ] {
        let model = copy(&sd());
        fs::remove_file(model.path().join(file)).unwrap();
        assert_refused(model.path(), file);
    }
    let model = copy(&sd());
    fs::remove_dir_all(model.path().join("tokenizer")).unwrap();
    assert_refused(model.path(), "tokenizer/vocab.json: the file is missing");
    let model = copy(&sd());
    let scheduler = model.path().join("scheduler/scheduler_config.json");
    let text = fs::read_to_string(&scheduler).unwrap();
    fs::write(&scheduler, text.replace(r#""thresholding": false"#, r#""thresholding": true"#))
        .unwrap();
    assert_refused(model.path(), "scheduler: `thresholding` is true");
}

const FLOAT: u8 = 1;
const INT32: u8 = 6;
const INT64: u8 = 7;
const FLOAT16: u8 = 10;

#[derive(Clone)]
struct Tensor {
    name: &'static str,
    element: u8,
    shape: Vec<u8>,
}

impl Tensor {
    fn floats(name: &'static str, shape: &[u8]) -> Self {
        Self { name, element: FLOAT, shape: shape.to_vec() }
    }

    fn port(&self) -> Vec<u8> {
        let sizes: Vec<u8> = self
            .shape
            .iter()
            .flat_map(|size| message(1, &[&[8], [*size].as_slice()].concat()))
            .collect();
        let tensor = [vec![8, self.element], message(2, &sizes)].concat();
        [message(1, self.name.as_bytes()), message(2, &message(1, &tensor))].concat()
    }
}

/// Returns the ONNX file of a UNet for two texts that returns other noise in each run.
pub fn random_unet() -> Vec<u8> {
    let inputs = [
        Tensor::floats("sample", &[2, 9, 8, 8]),
        Tensor { name: "timestep", element: INT64, shape: vec![] },
        Tensor::floats("encoder_hidden_states", &[2, 77, 32]),
    ];
    let output = Tensor::floats("out_sample", &[2, 4, 8, 8]);
    let sizes: Vec<u8> = output.shape.iter().flat_map(|size| [8 << 3, *size]).collect();
    // The last field says that the attribute holds integers.
    let shape = [message(1, b"shape"), sizes, vec![0xa0, 1, 7]].concat();
    let noise = [message(2, output.name.as_bytes()), message(4, b"RandomNormal")];
    model(&[noise.concat(), message(5, &shape)].concat(), &[], &inputs, &output)
}

/// Returns the ONNX file of a net with these inputs that always returns zeros.
fn net(inputs: &[Tensor], output: &Tensor) -> Vec<u8> {
    let dims: Vec<u8> = output.shape.iter().flat_map(|size| [8, *size]).collect();
    let count: usize = output.shape.iter().map(|size| usize::from(*size)).product();
    let width = if output.element == FLOAT16 { 2 } else { 4 };
    let zeros = message(9, &vec![0; width * count]);
    let zeros = [dims, vec![16, output.element], message(8, b"zeros"), zeros].concat();
    let copy = [message(1, b"zeros"), message(2, output.name.as_bytes()), message(4, b"Identity")];
    model(&copy.concat(), &message(5, &zeros), inputs, output)
}

/// Returns the ONNX file of one node with these initializers.
fn model(node: &[u8], initializers: &[u8], inputs: &[Tensor], output: &Tensor) -> Vec<u8> {
    let mut graph = [message(1, node), message(2, b"made"), initializers.to_vec()].concat();
    graph.extend(inputs.iter().flat_map(|input| message(11, &input.port())));
    graph.extend(message(12, &output.port()));
    let opset = [message(1, b""), vec![16, 17]].concat();
    [vec![8, 8], message(7, &graph), message(8, &opset)].concat()
}

fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut length = bytes.len();
    let mut out = vec![field << 3 | 2];
    while length > 127 {
        out.push((length % 128) as u8 | 128);
        length /= 128;
    }
    out.push(length as u8);
    [out, bytes.to_vec()].concat()
}
