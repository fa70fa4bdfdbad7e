//! Only the ledger moves a balance, and the database enforces that.

use retouch_core::credits::{self, Adjusted, Adjustment};
use retouch_standins::testing::{ISSUER, sign_in, user};
use sqlx::PgPool;

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_new_user_gets_20_credits_once_despite_concurrent_first_requests(pool: PgPool) {
    let calls = (0..20).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { sign_in(&pool, ISSUER, "ada").await })
    });
    let mut ids = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        let user = call.await.unwrap();
        assert_eq!((user.credits, user.reserved), (20, 0));
        ids.push(user.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let entries: i64 =
        sqlx::query_scalar("select count(*) from ledger").fetch_one(&pool).await.unwrap();
    assert_eq!(entries, 1);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn only_ledger_entries_move_credits(pool: PgPool) {
    let id = user(&pool, "ada", 0).await;
    let direct = sqlx::query("update users set credits = 1000 where id = $1").bind(id);
    assert!(
        direct.execute(&pool).await.unwrap_err().to_string().contains("only by a ledger entry")
    );
    let rich =
        "insert into users (id, issuer, subject, credits) values (gen_random_uuid(), 'i', 's', 5)";
    assert!(sqlx::query(rich).execute(&pool).await.is_err());
    for change in ["update ledger set amount = 1000", "delete from ledger", "truncate ledger"] {
        let refused = sqlx::query(change).execute(&pool).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{change}: {refused}");
    }
    let overdraw =
        "insert into ledger (user_id, kind, amount, reference) values ($1, 'admin', -21, 'x')";
    let refused = sqlx::query(overdraw).bind(id).execute(&pool).await.unwrap_err();
    assert!(refused.to_string().contains("users_solvent"), "{refused}");
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_adjustment_applies_once_per_reference(pool: PgPool) {
    let id = user(&pool, "ada", 0).await;
    let change = Adjustment { user: id, amount: 30, reference: "ticket 7", note: None };
    assert_eq!(credits::adjust(&pool, &change).await.unwrap(), Adjusted::Applied);
    assert_eq!(credits::adjust(&pool, &change).await.unwrap(), Adjusted::AlreadyApplied);
    assert_eq!(sign_in(&pool, ISSUER, "ada").await.credits, 50);
    assert_eq!(credits::audit(&pool).await.unwrap(), []);
}
