//! The list of images: searched, sorted, in pages; and deleting many at once.

use axum::http::StatusCode;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::app::{TestApp, png};

/// Uploads images of ada with these names, the larger the later, and returns their ids.
async fn upload(app: &TestApp, names: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let request = app.post("/api/images/upload").by(&app.token("ada"));
        let picture = png(16 + 40 * n as u32, 16);
        let request = match *name {
            "" => request.nameless_file(&picture),
            name => request.file_named(name, &picture),
        };
        ids.push(request.send().await.json()["id"].as_str().unwrap().to_owned());
    }
    ids
}

fn names(list: &Value) -> Vec<&str> {
    let images = list["images"].as_array().unwrap();
    images.iter().map(|image| image["name"].as_str().unwrap_or_default()).collect()
}

async fn list(app: &TestApp, query: &str) -> Value {
    let answer = app.get(&format!("/api/images?{query}")).by(&app.token("ada")).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
    answer.json()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_name_has_the_characters_that_browsers_encode(pool: PgPool) {
    let app = TestApp::start(pool).await;
    upload(&app, &["12%22 speaker%0D%0A.jpg", "50%25 off.jpg"]).await;
    assert_eq!(names(&list(&app, "sort=name").await), ["12\" speaker.jpg", "50%25 off.jpg"]);
    assert_eq!(names(&list(&app, "search=%22").await), ["12\" speaker.jpg"]);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_search_finds_a_part_of_the_name_literally(pool: PgPool) {
    let app = TestApp::start(pool).await;
    upload(&app, &["Cat.jpg", "100% cat.png", "dog_1.png", "dog1.png", ""]).await;
    for (search, found) in [
        ("CAT", vec!["100% cat.png", "Cat.jpg"]),
        ("%25", vec!["100% cat.png"]),
        ("_", vec!["dog_1.png"]),
        ("dog", vec!["dog1.png", "dog_1.png"]),
        ("%5C", vec![]),
        ("bird", vec![]),
    ] {
        assert_eq!(names(&list(&app, &format!("search={search}")).await), found, "{search}");
        let page = list(&app, &format!("search={search}&limit=9")).await;
        assert_eq!((names(&page), &page["total"]), (found.clone(), &json!(found.len())));
    }
    let long = format!("search={}", "x".repeat(101));
    let id = uuid::Uuid::nil();
    let never = [
        format!("sort=newest&before=-8000000000000000000-{id}"),
        format!("sort=oldest&before=8000000000000000000-{id}"),
    ];
    for wrong in [
        "search=",
        "search=%00",
        "sort=x",
        "sort=name&before=1-x",
        long.as_str(),
        &never[0],
        &never[1],
    ] {
        let path = format!("/api/images?{wrong}");
        let answer = app.get(&path).by(&app.token("ada")).send().await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn every_order_comes_in_pages_with_the_total_first(pool: PgPool) {
    let app = TestApp::start(pool).await;
    upload(&app, &["b.png", "", "A.png", "c.png", "a.png", "", "Ü-ber.png"]).await;
    sqlx::query("update images set size_bytes = 7 where name in ('b.png', 'c.png')")
        .execute(&app.pool)
        .await
        .unwrap();
    let whole = list(&app, "").await;
    assert_eq!((whole.get("total"), whole.get("next")), (None, None));
    for sort in ["newest", "oldest", "name", "largest"] {
        let whole = list(&app, &format!("sort={sort}")).await;
        for limit in [1, 2, 3, 7, 8] {
            let (mut paged, mut before, mut first) = (Vec::new(), String::new(), true);
            loop {
                let page = list(&app, &format!("sort={sort}&limit={limit}{before}")).await;
                assert_eq!(page.get("total"), first.then_some(&json!(7)), "{sort} {limit}");
                first = false;
                let images = page["images"].as_array().unwrap();
                assert!(!images.is_empty(), "the last page has no next");
                paged.extend(images.iter().map(|image| image["id"].clone()));
                let Some(next) = page["next"].as_str() else { break };
                before = format!("&before={next}");
            }
            let ids = whole["images"].as_array().unwrap().iter().map(|image| image["id"].clone());
            assert_eq!(paged, ids.collect::<Vec<_>>(), "{sort} in pages of {limit}");
        }
    }
    let by_name = list(&app, "sort=name").await;
    assert_eq!(names(&by_name)[5..], ["", ""], "those without a name come last");
    assert_eq!(names(&by_name)[2..4], ["b.png", "c.png"]);
    let by_time = list(&app, "sort=oldest").await;
    assert_eq!(names(&by_time)[..3], ["b.png", "", "A.png"]);
    let by_size = list(&app, "sort=largest").await;
    assert_eq!(names(&by_size)[0], "Ü-ber.png");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn many_images_are_deleted_at_once_and_their_runs_are_canceled(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let ada = app.token("ada");
    let ids = upload(&app, &["a.png", "b.png", "c.png"]).await;
    let of_bob = app.upload("bob").await;
    let run = format!("/api/rmbg-images/remove-bg-ai?imageId={}", ids[0]);
    let job = app.post(&run).by(&ada).asynchronously().send().await.json();
    assert_eq!(app.balance("ada").await, (20, 5));

    let delete = async |ids: Value| {
        let body = json!({"imageIds": ids});
        app.post("/api/images/delete").by(&ada).json_body(&body).send().await
    };
    let unknown = retouch_core::ImageId::new().to_string();
    let answer = delete(json!([ids[0], of_bob, unknown, ids[2], ids[0]])).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let mut gone: Vec<_> = answer.json()["deleted"].as_array().unwrap().clone();
    gone.sort_by_key(ToString::to_string);
    assert_eq!(gone, [json!(ids[0]), json!(ids[2])]);
    assert_eq!(names(&list(&app, "").await), ["b.png"]);
    assert_eq!(app.balance("ada").await, (20, 0));
    let job = app.get(&format!("/api/jobs/{}", job["id"].as_str().unwrap())).by(&ada).send().await;
    assert_eq!(job.json()["state"], "cancelled");
    assert_eq!(delete(json!([ids[0], of_bob])).await.json(), json!({"deleted": []}));

    for wrong in [json!([]), json!(["x"]), json!("x"), json!(vec![&unknown; 501])] {
        assert_eq!(delete(wrong).await.status, StatusCode::BAD_REQUEST);
    }
    let anonymous = app.post("/api/images/delete").json_body(&json!({"imageIds": [ids[1]]}));
    assert_eq!(anonymous.send().await.status, StatusCode::UNAUTHORIZED);
}
