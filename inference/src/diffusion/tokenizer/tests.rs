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
        assert_eq!(tokenizer.encode(text, 1).unwrap().windows, [expected], "{text}");
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
fn cut_tokens_are_counted() {
    let tokenizer = ClipTokenizer::open(&model().join("tokenizer"), 77).unwrap();
    let short = tokenizer.encode("cat", 1).unwrap();
    assert_eq!((short.windows[0].len(), short.cut), (77, 0));
    let long = tokenizer.encode(&"!? ".repeat(100), 1).unwrap();
    assert_eq!(long.windows[0].len(), 77);
    assert!(long.cut >= 25, "{}", long.cut);
    assert_eq!(long.windows[0][76], tokenizer.end);
}

#[test]
fn a_long_text_fills_several_windows_without_splitting_words() {
    let tokenizer = ClipTokenizer::open(&model().join("tokenizer"), 9).unwrap();
    let text = ["naïve"; 20].join(" ");
    let text_of = |window: &[i64]| -> Vec<i64> {
        let end = window.iter().position(|id| *id == tokenizer.end).unwrap();
        window[1..end].to_vec()
    };
    let word = text_of(&tokenizer.encode("naïve", 1).unwrap().windows[0]);
    assert!(
        word.len() > 1 && 7 % word.len() != 0,
        "a word of several tokens does not fill a window"
    );
    let long = tokenizer.encode(&text, 20).unwrap();
    assert_eq!(long.cut, 0);
    let pieces: Vec<_> = long.windows.iter().map(|window| text_of(window)).collect();
    assert_eq!(pieces.concat(), word.repeat(20));
    assert!(pieces.iter().all(|piece| piece.len() % word.len() == 0), "{pieces:?}");
    let two = tokenizer.encode(&text, 2).unwrap();
    assert_eq!(two.windows[0], long.windows[0]);
    assert_eq!((two.windows.len(), two.cut), (2, 20 * word.len() - pieces[0].len() - 7));
    assert_eq!(tokenizer.encode("", 3).unwrap().windows, [tokenizer.window(&[])]);
    // A word that has no room in a window wastes none.
    let endless = tokenizer.encode(&format!("cat {}", "naïve".repeat(4)), 3).unwrap();
    assert_eq!(text_of(&endless.windows[0]).len(), 7);
}

#[test]
fn the_padding_token_is_read_from_the_settings() {
    let folder = copy_without(&["special_tokens_map.json", "tokenizer_config.json"]);
    let settings = r#"{"pad_token": {"content": "!"}, "model_max_length": 1e30}"#;
    fs::write(folder.path().join("tokenizer_config.json"), settings).unwrap();
    let tokenizer = ClipTokenizer::open(folder.path(), 77).unwrap();
    let exclamation = i64::from(tokenizer.tokenizer.token_to_id("!").unwrap());
    let window = tokenizer.encode("cat", 1).unwrap().windows.remove(0);
    assert_eq!((window.len(), window[76]), (77, exclamation));
}

/// The ids of a text between begin and end, with other settings of the tokenizer.
fn ids_with(settings: &str, text: &str) -> Vec<i64> {
    ["tokenizer.json", ""]
        .map(|left_out| {
            let files = ["special_tokens_map.json", "tokenizer_config.json", left_out];
            let folder = copy_without(&files);
            fs::write(folder.path().join("tokenizer_config.json"), settings).unwrap();
            let tokenizer = ClipTokenizer::open(folder.path(), 77).unwrap();
            let ids = tokenizer.encode(text, 1).unwrap().windows.remove(0);
            let end = ids.iter().position(|id| *id == tokenizer.end).unwrap();
            ids[1..end].to_vec()
        })
        .into_iter()
        .reduce(|one, other| {
            assert_eq!(one, other, "both layouts give the same ids");
            one
        })
        .unwrap()
}

#[test]
fn a_padding_token_is_recognized_in_texts_as_in_transformers() {
    // transformers 5.23: 666 643 529 0 667 with it, and `!</w>`, 256, without.
    let with = ids_with(r#"{"pad_token": "!"}"#, "high quality!");
    let without = ids_with("{}", "high quality!");
    assert_eq!((with.last(), without.last()), (Some(&0), Some(&256)));
    assert_eq!(with[..with.len() - 1], without[..without.len() - 1]);
}

#[test]
fn added_tokens_are_known() {
    let next = ClipTokenizer::open(&model().join("tokenizer"), 77).unwrap();
    let next = next.tokenizer.get_vocab_size(true);
    let settings = |id: usize| {
        format!(
            r#"{{"added_tokens_decoder": {{"{id}": {{"content": "<sks>", "special": false}}}}}}"#
        )
    };
    let ids = ids_with(&settings(next), "a <sks> cat");
    assert!(ids.contains(&i64::try_from(next).unwrap()), "{ids:?}");
    let folder = copy_without(&["tokenizer_config.json"]);
    fs::write(folder.path().join("tokenizer_config.json"), settings(next + 7)).unwrap();
    let error = ClipTokenizer::open(folder.path(), 77).unwrap_err().to_string();
    assert!(error.contains("<sks>"), "{error}");
}

#[test]
fn a_missing_tokenizer_is_named() {
    let folder = copy_without(&["tokenizer.json", "merges.txt"]);
    let error = ClipTokenizer::open(folder.path(), 77).unwrap_err().to_string();
    assert!(error.contains("merges.txt: the file is missing"), "{error}");
}
