//! Random sequences of steps on images, jobs and objects: the janitor deletes no object that a row refers to, and in
//! the end no other object is left.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

/// A step on one of a few images, its jobs or its objects. A step that is impossible at the moment does nothing.
#[derive(Clone, Copy, Debug)]
enum Step {
    Announce(usize),
    Put(usize),
    Record(usize),
    Delete,
    Submit(usize),
    Claim,
    PutResult(usize),
    Finish(usize),
    LoseWorkers,
    DeleteResults,
    GoOnFrom(usize),
    TwoHoursPass,
    ListBucket,
    DoomOrphans,
    DeleteDoomed,
}

const PICTURES: usize = 2;

fn step() -> impl Strategy<Value = Step> {
    use Step::{
        Announce, Claim, Delete, DeleteDoomed, DeleteResults, DoomOrphans, Finish, GoOnFrom,
        ListBucket, LoseWorkers, Put, PutResult, Record, Submit, TwoHoursPass,
    };
    let picture = || 0..PICTURES;
    prop_oneof![
        6 => picture().prop_map(Announce),
        6 => picture().prop_map(Put),
        6 => picture().prop_map(Record),
        1 => Just(Delete),
        4 => picture().prop_map(Submit),
        4 => Just(Claim),
        5 => picture().prop_map(PutResult),
        5 => picture().prop_map(Finish),
        1 => Just(LoseWorkers),
        1 => Just(DeleteResults),
        4 => picture().prop_map(GoOnFrom),
        1 => Just(TwoHoursPass),
        2 => Just(ListBucket),
        3 => Just(DoomOrphans),
        3 => Just(DeleteDoomed),
    ]
}

/// The state that the steps change.
struct World<'a> {
    pool: &'a PgPool,
    storage: &'a Storage,
    owner: UserId,
    ids: [ImageId; PICTURES],
    announced: [bool; PICTURES],
    stored: [bool; PICTURES],
    /// The jobs that workers hold, or still believe to hold, and whether the result's objects are written.
    claims: Vec<(Claimed, bool)>,
    listed: Vec<Page>,
    /// How many images were inserted, how many came too late, how many jobs were finished, how many had lost their
    /// lease, and how many images were made from results.
    seen: [usize; 5],
}

impl<'a> World<'a> {
    fn new(pool: &'a PgPool, storage: &'a Storage, owner: UserId) -> Self {
        Self {
            pool,
            storage,
            owner,
            ids: std::array::from_fn(|_| ImageId::new()),
            announced: [false; PICTURES],
            stored: [false; PICTURES],
            claims: Vec::new(),
            listed: Vec::new(),
            seen: [0; 5],
        }
    }

    async fn take(&mut self, step: Step) {
        let pool = self.pool;
        match step {
            Step::Announce(n) if !self.announced[n] => {
                images::announce(pool, self.ids[n]).await.unwrap();
                self.announced[n] = true;
            }
            Step::Put(n) if self.announced[n] && !self.stored[n] => {
                put(self.storage, &keys_of(self.ids[n])).await;
                self.stored[n] = true;
            }
            // Only once: no image is uploaded again under the same id.
            Step::Record(n) if self.stored[n] => {
                let new = new_image(self.ids[n], self.owner);
                let recorded = images::insert(pool, &new, Quota::NONE).await.unwrap();
                self.seen[usize::from(recorded == InsertOutcome::TooLate)] += 1;
                self.ids[n] = self.renewed(n);
            }
            Step::Delete => {
                if let Some(image) = images::list(pool, self.owner, None, 1000).await.unwrap().pop()
                {
                    images::delete(pool, self.owner, image.id).await.unwrap();
                }
            }
            Step::Submit(n) => {
                let pictures = images::list(pool, self.owner, None, 1000).await.unwrap();
                if let Some(image) = pictures.get(n % pictures.len().max(1)) {
                    let new = NewJob {
                        idempotency_key: Some(JobId::new().to_string()),
                        ..run(self.owner, image.id, Tier::Paid)
                    };
                    submit(pool, &new).await;
                }
            }
            Step::Claim => {
                let worker = WorkerId::new();
                let classes = [JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground }];
                for isolation in [Isolation::Shared, Isolation::Alone] {
                    let claimed =
                        jobs::claim(pool, worker, &classes, &FixMode::ALL, isolation, LEASE)
                            .await
                            .unwrap();
                    self.claims.extend(claimed.map(|claimed| (claimed, false)));
                }
            }
            Step::PutResult(n) => {
                let count = self.claims.len().max(1);
                if let Some((job, has_put)) = self.claims.get_mut(n % count) {
                    put(self.storage, &keys_of_attempt(job.id, job.attempt)).await;
                    *has_put = true;
                }
            }
            Step::Finish(n) => {
                let stored = self.claims.iter().enumerate().filter(|(_, claim)| claim.1);
                let stored: Vec<usize> = stored.map(|(place, _)| place).collect();
                if let Some(place) = stored.get(n % stored.len().max(1)) {
                    let (job, _) = self.claims.remove(*place);
                    let made = new_result(job.id, job.attempt);
                    let finish = jobs::finish(pool, job.as_attempt(), &made).await.unwrap();
                    self.seen[2 + usize::from(finish == Finish::LeaseLost)] += 1;
                }
            }
            Step::LoseWorkers => {
                execute(pool, "update jobs set lease_until = now() - interval '1 minute' where state = 'running'").await;
                jobs::sweep(pool, Duration::ZERO).await.unwrap();
            }
            Step::DeleteResults => {
                for result in self.results().await {
                    results::delete(pool, self.owner, result.tool, result.id).await.unwrap();
                }
            }
            Step::GoOnFrom(n) => {
                let made = self.results().await;
                if let Some(result) = made.get(n % made.len().max(1)) {
                    let made = images::from_result(
                        pool,
                        self.owner,
                        result.id,
                        Stay::ForGood,
                        Quota::NONE,
                    )
                    .await
                    .unwrap();
                    self.seen[4] += usize::from(matches!(made, FromResult::Made(_)));
                }
            }
            Step::TwoHoursPass => two_hours_later(pool).await,
            Step::ListBucket => {
                for folder in ["images/", "results/"] {
                    self.listed.push(self.storage.page(folder, None, 1000).await.unwrap());
                }
            }
            // The listing may be out of date by now.
            Step::DoomOrphans => {
                for page in std::mem::take(&mut self.listed) {
                    janitor::doom_orphans(pool, &page, NO_GRACE).await.unwrap();
                }
            }
            Step::DeleteDoomed => drop(janitor::delete_doomed(pool, self.storage).await.unwrap()),
            _ => {}
        }
    }

    /// Returns a new image in place of one that was inserted or refused.
    fn renewed(&mut self, n: usize) -> ImageId {
        self.announced[n] = false;
        self.stored[n] = false;
        ImageId::new()
    }

    async fn results(&self) -> Vec<ResultImage> {
        let images = images::list(self.pool, self.owner, None, 1000).await.unwrap();
        let images: Vec<_> = images.iter().map(|image| image.id).collect();
        results::of_images(self.pool, &images).await.unwrap()
    }

    async fn named_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = sqlx::query_scalar(
            "select unnest(array[object_key, thumbnail_key]) from images
             union all select unnest(array[object_key, thumbnail_key]) from results",
        )
        .fetch_all(self.pool)
        .await
        .unwrap();
        // An image that was made from a result has its keys.
        keys.sort();
        keys.dedup();
        keys
    }

    /// Cancels all active jobs; then the janitor deletes what is left.
    async fn settle(&mut self) {
        execute(self.pool, "update jobs set state = 'cancelled', finished_at = now(), lease_owner = null, lease_until = null where state in ('queued', 'running')").await;
        execute(self.pool, "update users set reserved = 0").await;
        for step in [Step::TwoHoursPass, Step::DeleteDoomed, Step::ListBucket] {
            self.take(step).await;
        }
        for step in [Step::DoomOrphans, Step::DeleteDoomed] {
            self.take(step).await;
        }
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn after_any_sequence_exactly_the_referenced_objects_are_left(pool: PgPool) {
    always_reachable(&pool).await;
    let bucket = Bucket::start().await;
    let owner = user(&pool, "ada", 100_000).await;
    let mut runner = TestRunner::deterministic();
    let mut seen = [0; 5];
    for _ in 0..30 {
        let steps = prop::collection::vec(step(), 80).new_tree(&mut runner).unwrap().current();
        let mut world = World::new(&pool, &bucket.storage, owner);
        for (number, step) in steps.iter().enumerate() {
            world.take(*step).await;
            // No other step deletes an object.
            if !matches!(step, Step::DeleteDoomed) {
                continue;
            }
            let present = object_keys(&bucket.storage).await;
            for key in world.named_keys().await {
                assert!(present.contains(&key), "{key} is gone after step {number} of {steps:?}");
            }
        }
        for (sum, count) in seen.iter_mut().zip(world.seen) {
            *sum += count;
        }
        world.settle().await;
        let present = object_keys(&bucket.storage).await;
        assert_eq!(present, world.named_keys().await, "after all of {steps:?}");
        for image in images::list(&pool, owner, None, 1000).await.unwrap() {
            images::delete(&pool, owner, image.id).await.unwrap();
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "some case never occurred: {seen:?}");
}
