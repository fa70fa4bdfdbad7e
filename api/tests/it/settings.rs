//! Settings that cannot work stop the program at its start, and its message names the variable to change.

use std::net::TcpListener;
use std::process::Command;

/// Runs `retouch-api serve` with these settings and the least others, and returns what it wrote. It cannot listen on its
/// address, so it always exits.
fn serve(settings: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_retouch-api"))
        .arg("serve")
        .env_clear()
        .envs([
            ("DATABASE_URL", "postgres://127.0.0.1:1/none"),
            ("REDIS_URL", "redis://127.0.0.1:1"),
            ("S3_ACCESS_KEY_ID", "test"),
            ("S3_SECRET_ACCESS_KEY", "test-secret"),
            ("OIDC_ISSUER", "https://login.example.com"),
            ("RETOUCH_URL_SECRET", "a secret of the tests"),
            // An address for documentation (RFC 5737), which no machine has.
            ("RETOUCH_LISTEN", "192.0.2.1:80"),
        ])
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_address_that_is_not_of_this_machine_is_named() {
    let said = serve(&[]);
    assert!(said.contains("listening on 192.0.2.1:80 (RETOUCH_LISTEN)"), "{said}");
}

#[test]
fn numbers_that_cannot_work_are_refused() {
    for (name, value) in [
        ("RETOUCH_MAX_UPLOAD_BYTES", "0"),
        ("RETOUCH_UPLOAD_MEMORY_MIB", "0"),
        ("RETOUCH_UPLOAD_PAUSE_SECS", "0"),
        ("RETOUCH_WAIT_SECS", "0"),
        ("RETOUCH_PAID_QUEUE", "-1"),
        ("RETOUCH_USER_STORAGE_MIB", "9223372036854775807"),
        ("RETOUCH_DECODE_THREADS", "0"),
        ("RETOUCH_ADDRESS_CONNECTIONS", "0"),
        ("RETOUCH_HEAD_TIMEOUT_SECS", "0"),
    ] {
        let said = serve(&[(name, value)]);
        assert!(said.contains(&format!("in the environment: {name}")), "{said}");
    }
}

#[test]
fn an_issuer_must_be_an_address() {
    for issuer in ["login.example.com", "ftp://login.example.com"] {
        let said = serve(&[("OIDC_ISSUER", issuer)]);
        assert!(said.contains("in the environment: OIDC_ISSUER"), "{said}");
    }
}

#[test]
fn keys_of_another_kind_are_refused_and_not_shown() {
    let (key, secret) = ("STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET");
    for (settings, reason) in [
        ([(key, "pk_live_tell"), (secret, "whsec_1")], "STRIPE_SECRET_KEY must be a secret key"),
        ([(key, "sk_live_1"), (secret, "sk_live_tell")], "STRIPE_WEBHOOK_SECRET must be a signing"),
        ([(key, "sk_live_tell"), (secret, "")], "STRIPE_WEBHOOK_SECRET is not. Set both"),
    ] {
        let said = serve(&settings);
        assert!(said.contains(reason) && !said.contains("tell"), "{said}");
    }
}

#[test]
fn half_of_a_key_of_content_credentials_is_refused() {
    for name in ["RETOUCH_CREDENTIALS_CHAIN", "RETOUCH_CREDENTIALS_KEY"] {
        let said = serve(&[(name, "-----BEGIN")]);
        assert!(said.contains("belong together: set both, or neither"), "{said}");
    }
}

#[test]
fn a_busy_port_for_metrics_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let said = serve(&[("RETOUCH_METRICS_LISTEN", &taken.local_addr().unwrap().to_string())]);
    assert!(said.contains("(RETOUCH_METRICS_LISTEN)"), "{said}");
}

#[test]
fn the_log_says_what_the_settings_leave_out() {
    let said = serve(&[("RETOUCH_UI_DIR", "/nowhere"), ("RETOUCH_DECODE_MEMORY_MIB", "20")]);
    assert!(said.contains("(RETOUCH_UI_DIR), browsers get no page"), "{said}");
    assert!(said.contains("raise RETOUCH_DECODE_MEMORY_MIB"), "{said}");
}
