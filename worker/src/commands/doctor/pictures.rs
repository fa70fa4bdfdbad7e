//! Checks HEIC and AVIF decoding for the command line. On a server, the API decodes uploads.

use retouch_heif::{Heif, HeifConfig, Support};

use super::finding::Finding;

pub async fn check(config: &HeifConfig) -> Finding {
    let support = match Heif::new(config) {
        Ok(heif) => heif.support().await,
        Err(error) => Support { detail: error.to_string(), ..Support::default() },
    };
    finding(&support)
}

fn finding(support: &Support) -> Finding {
    let Support { heic, avif, detail } = support;
    let names = match (heic, avif) {
        (true, true) => return Finding::good(format!("HEIC and AVIF are read by {detail}")),
        (true, false) => "AVIF is",
        (false, true) => "HEIC is",
        (false, false) => "HEIC and AVIF are",
    };
    Finding::note(format!(
        "{names} refused ({detail}); libheif reads them (Debian: apt-get install libheif1), see RETOUCH_HEIF_LIBRARY"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_noted_with_what_to_do() {
        let support = |heic, avif| Support { heic, avif, detail: "libheif 1.15.1".to_owned() };
        let both = finding(&support(true, true)).to_string();
        assert!(both.contains("ok    HEIC and AVIF are read by libheif 1.15.1"), "{both}");
        let one = finding(&support(false, true));
        assert!(one.to_string().contains("note  HEIC is refused") && !one.is_bad(), "{one}");
    }
}
