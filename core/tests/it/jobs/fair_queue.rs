//! The fair order of jobs.

use std::collections::HashSet;

use retouch_catalog::Factor;

use super::*;

async fn submit_paid(pool: &PgPool, owner: UserId, count: usize) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(submit(pool, &paid(owner, image(pool, None, owner, b"x").await)).await);
    }
    jobs
}

async fn claim_all(pool: &PgPool) -> Vec<JobId> {
    let worker = WorkerId::new();
    let mut order = Vec::new();
    while let Some(claimed) = claim(pool, worker).await {
        order.push(claimed.id);
    }
    order
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn paid_runs_go_first_and_users_take_turns(pool: PgPool) {
    let ada = user(&pool, "ada", 80).await;
    let bob = user(&pool, "bob", 0).await;
    let free_one = submit(&pool, &free(bob, image(&pool, None, bob, b"x").await)).await;
    let hers = submit_paid(&pool, ada, 3).await;
    let his = submit_paid(&pool, bob, 1).await;
    let order = [hers[0], his[0], hers[1], hers[2], free_one];
    for (place, job) in (0..).zip(order) {
        let job = jobs::get(&pool, job).await.unwrap().unwrap();
        assert_eq!(
            jobs::estimate(&pool, &job).await.unwrap().position,
            Some(place),
            "as estimated"
        );
    }
    assert_eq!(claim_all(&pool).await, order);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn estimates_of_many_jobs_are_those_of_each(pool: PgPool) {
    let ada = user(&pool, "ada", 1000).await;
    let bob = user(&pool, "bob", 1000).await;
    let worker = WorkerId::new();
    sqlx::query("insert into workers (id, name, device, models, slots, version) values ($1, 'w', 'cpu', '[]', 2, '1')")
        .bind(worker.uuid())
        .execute(&pool)
        .await
        .unwrap();
    let done = submit_paid(&pool, ada, 1).await[0];
    claim(&pool, worker).await.unwrap();
    jobs::finish(&pool, first_attempt(done, worker), &new_result(done, 1)).await.unwrap();
    for owner in [ada, bob, ada, bob, bob] {
        let picture = image(&pool, None, owner, b"x").await;
        submit(&pool, &paid(owner, picture)).await;
        submit(&pool, &NewJob { tool: Tool::Upscale(Factor::X2), ..paid(owner, picture) }).await;
        submit(&pool, &free(owner, picture)).await;
    }
    // One runs, and one was put back: its turn is older than those of its neighbors.
    claim(&pool, worker).await.unwrap();
    sqlx::query("update jobs set turn = 0 where id = (select id from jobs where state = 'queued' order by turn desc limit 1)")
        .execute(&pool)
        .await
        .unwrap();
    let mut active = jobs::active(&pool, bob, None).await.unwrap();
    active.extend(jobs::active(&pool, ada, None).await.unwrap());
    assert_eq!(active.len(), 15);

    let together = jobs::estimates(&pool, &active).await.unwrap();
    let mut each = Vec::new();
    for job in &active {
        each.push(jobs::estimate(&pool, job).await.unwrap());
    }
    assert_eq!(together, each);
    assert_eq!(each.iter().filter(|estimate| estimate.position.is_none()).count(), 1, "one runs");
    assert!(each.iter().any(|estimate| estimate.eta_secs.is_some()));
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_newcomer_does_not_wait_for_the_whole_list_of_another_user(pool: PgPool) {
    let ada = user(&pool, "ada", 1000).await;
    let bob = user(&pool, "bob", 1000).await;
    let hers = submit_paid(&pool, ada, 12).await;
    let worker = WorkerId::new();
    for job in &hers[..5] {
        assert_eq!(claim(&pool, worker).await.unwrap().id, *job);
    }
    let his = submit_paid(&pool, bob, 3).await;
    // Her fifth turn is being served; his jobs get the next three.
    let order = [hers[5], his[0], hers[6], his[1], hers[7], his[2], hers[8]];
    assert_eq!(claim_all(&pool).await[..7], order);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn newcomers_do_not_starve_a_long_list(pool: PgPool) {
    let ada = user(&pool, "ada", 1000).await;
    let hers = submit_paid(&pool, ada, 10).await;
    let worker = WorkerId::new();
    let mut served = Vec::new();
    for round in 0..20 {
        let newcomer = user(&pool, &format!("newcomer {round}"), 0).await;
        submit_paid(&pool, newcomer, 1).await;
        let claimed = claim(&pool, worker).await.unwrap();
        if claimed.owner == Some(ada) {
            served.push(round);
        }
        jobs::finish(&pool, claimed.as_attempt(), &new_result(claimed.id, 1)).await.unwrap();
    }
    // Each round adds a waiting user, and each of them gets one turn between two of hers.
    assert_eq!(served, [0, 2, 5, 9, 14], "of {}", hers.len());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn within_a_tier_the_longest_waiting_tool_goes_first(pool: PgPool) {
    let ada = user(&pool, "ada", 1000).await;
    let bob = user(&pool, "bob", 1000).await;
    let enlarge = |picture| NewJob { tool: Tool::Upscale(Factor::X2), ..paid(bob, picture) };
    let hers = submit_paid(&pool, ada, 2).await;
    let his = submit(&pool, &enlarge(image(&pool, None, bob, b"x").await)).await;
    let third = submit_paid(&pool, ada, 1).await;
    let classes = [ToolName::RemoveBackground, ToolName::Upscale]
        .map(|tool| JobClass { tier: Tier::Paid, tool });
    let worker = WorkerId::new();
    for job in [hers[0], hers[1], his, third[0]] {
        let claimed = jobs::claim(&pool, worker, &classes, &FixMode::ALL, Isolation::Shared, LEASE);
        assert_eq!(claimed.await.unwrap().unwrap().id, job);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn as_many_concurrent_claims_as_jobs_take_them_all(pool: PgPool) {
    let ada = user(&pool, "ada", 1000).await;
    let jobs = submit_paid(&pool, ada, 40).await;
    let claims = (0..jobs.len()).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { claim(&pool, WorkerId::new()).await.map(|claimed| claimed.id) })
    });
    let mut taken = HashSet::new();
    for claim in claims.collect::<Vec<_>>() {
        taken.insert(claim.await.unwrap().expect("each claim gets a job"));
    }
    assert_eq!(taken, jobs.into_iter().collect());
}
