//! The `OpenAPI` document.

use std::path::Path;

use expect_test::expect_file;
use retouch_api::server::router;

#[test]
fn the_checked_in_document_is_up_to_date() {
    let document = router::openapi().to_pretty_json().unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/api/openapi.json");
    expect_file![path].assert_eq(&document);
}

#[test]
fn every_route_documents_its_security() {
    let document = serde_json::to_value(router::openapi()).unwrap();
    let open = [
        "/api/config",
        "/api/free/remove-bg-fr",
        "/api/free/upload",
        "/api/free/upscale-fr",
        "/api/files/{kind}/{id}",
        "/api/files/results/{id}/render",
        // Authenticated by the payment provider's signature.
        "/api/payments/webhook",
        "/healthz",
        "/readyz",
    ];
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let guarded = operation.get("security").is_some();
            assert_eq!(guarded, !open.contains(&path.as_str()), "{method} {path}");
            if guarded {
                // Clients of remove.bg expect 403.
                let refused = if path.starts_with("/v1.0/") { "403" } else { "401" };
                let says_so = operation["responses"].get(refused).is_some();
                assert!(says_so, "{method} {path} has no {refused}");
            }
        }
    }
}

#[test]
fn every_route_documents_that_the_server_may_be_unavailable() {
    let document = serde_json::to_value(router::openapi()).unwrap();
    let mut count = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let content = &operation["responses"]["503"]["content"];
            let body = if path.starts_with("/v1.0/") {
                &content["application/json"]["schema"]["$ref"]
            } else if path == "/readyz" {
                continue;
            } else {
                &content["application/problem+json"]["schema"]["$ref"]
            };
            assert!(body.is_string(), "{method} {path}: {content}");
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
}
