use std::fs;
use std::path::PathBuf;

use super::*;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny/sd-inpaint")
}

fn assert_cases(tokenizer: &ClipTokenizer) {
    let cases = json::read(&model().join("reference/tokenizer_cases.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() >= 9);
    for case in cases {
        let expected: Vec<i64> =
            case["ids"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
        let text = case["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text).unwrap().ids, expected, "{text}");
    }
}

/// The tokenizer folder without some of its files.
fn copy_without(left_out: &[&str]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(model().join("tokenizer")).unwrap() {
        let name = entry.unwrap().file_name();
        if !left_out.iter().any(|file| name == *file) {
            fs::copy(model().join("tokenizer").join(&name), copy.path().join(&name)).unwrap();
        }
    }
    copy
}

#[test]
fn ids_are_those_of_transformers() {
    assert_cases(&ClipTokenizer::open(&model().join("tokenizer"), 77).unwrap());
}

#[test]
fn vocabulary_and_merges_give_the_same_ids() {
    let folder = copy_without(&["tokenizer.json"]);
    assert_cases(&ClipTokenizer::open(folder.path(), 77).unwrap());
}

#[test]
fn what_does_not_fit_is_counted() {
    let tokenizer = ClipTokenizer::open(&model().join("tokenizer"), 77).unwrap();
    let short = tokenizer.encode("cat").unwrap();
    assert_eq!((short.ids.len(), short.cut), (77, 0));
    let long = tokenizer.encode(&"!? ".repeat(100)).unwrap();
    assert_eq!(long.ids.len(), 77);
    assert!(long.cut >= 25, "{}", long.cut);
    assert_eq!(long.ids[76], tokenizer.end);
}

#[test]
fn the_padding_token_is_read() {
    let folder = copy_without(&["special_tokens_map.json", "tokenizer_config.json"]);
    let settings = r#"{"pad_token": {"content": "!"}, "model_max_length": 1e30}"#;
    fs::write(folder.path().join("tokenizer_config.json"), settings).unwrap();
    let tokenizer = ClipTokenizer::open(folder.path(), 77).unwrap();
    let exclamation = i64::from(tokenizer.tokenizer.token_to_id("!").unwrap());
    let tokens = tokenizer.encode("cat").unwrap();
    assert_eq!((tokens.ids.len(), tokens.ids[76]), (77, exclamation));
}

#[test]
fn a_missing_tokenizer_is_named() {
    let folder = copy_without(&["tokenizer.json", "merges.txt"]);
    let error = ClipTokenizer::open(folder.path(), 77).unwrap_err().to_string();
    assert!(error.contains("merges.txt: there is no such file"), "{error}");
}
