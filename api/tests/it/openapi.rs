//! The `OpenAPI` document.

use std::collections::BTreeSet;
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
fn answers_document_their_headers_and_types() {
    let document = serde_json::to_value(router::openapi()).unwrap();
    for (path, method, status, headers) in [
        ("/api/rmbg-images/remove-bg-ai", "post", "202", "Location Preference-Applied"),
        ("/api/free/remove-bg-fr", "post", "202", "Location Preference-Applied"),
        ("/api/rmbg-images/remove-bg-ai", "post", "429", "Retry-After"),
        ("/api/keys", "get", "503", "Retry-After"),
        (
            "/v1.0/removebg",
            "post",
            "200",
            "X-Credits-Charged X-Height X-Max-Height X-Max-Width X-RateLimit-Limit \
             X-RateLimit-Remaining X-RateLimit-Reset X-Width",
        ),
    ] {
        let answer = &document["paths"][path][method]["responses"][status];
        let documented = answer["headers"].as_object().map(|headers| headers.keys());
        let documented = documented.into_iter().flatten().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(documented.join(" "), headers, "{method} {path}");
    }
    let file = &document["paths"]["/api/files/{kind}/{id}"]["get"]["responses"]["200"]["content"];
    let types = file.as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>();
    assert_eq!(types, BTreeSet::from(["image/jpeg", "image/png", "image/webp"]));
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
