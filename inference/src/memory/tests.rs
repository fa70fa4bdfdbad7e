use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

const NOW: Duration = Duration::ZERO;

fn tenant(memory: &Memory, name: &str) -> (Tenant, Arc<AtomicUsize>) {
    let woken = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&woken);
    let wake = move || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    (memory.register(name, wake), woken)
}

#[test]
fn what_can_never_fit_is_refused_in_words() {
    let memory = Memory::new(Some(300 << 20));
    let (model, _) = tenant(&memory, "large");
    let refused = model.acquire((300 << 20) + 1, || true).unwrap_err();
    assert!(refused.to_string().contains("needs about 301 MiB"), "{refused}");
    assert!(refused.to_string().contains("may take 300 MiB"), "{refused}");
    assert_eq!(model.acquire(300 << 20, || true), Ok(Wait::Over));
    assert_eq!((memory.held(), memory.loads()), (300 << 20, 1));
}

#[test]
fn without_a_limit_nobody_waits() {
    let memory = Memory::new(None);
    let models: Vec<_> = (0..9).map(|_| tenant(&memory, "same").0).collect();
    for model in &models {
        assert_eq!(model.acquire(u64::MAX / 16, || false), Ok(Wait::Over));
        assert!(!model.is_asked());
    }
}

#[test]
fn the_least_recently_used_models_give_way_and_no_more_than_necessary() {
    let memory = Memory::new(Some(100));
    let models = ["a", "b", "c"].map(|name| tenant(&memory, name));
    for (model, _) in &models {
        model.acquire(30, || true).unwrap();
    }
    models[0].0.touch();
    let (new, _) = tenant(&memory, "new");
    // It gives up at once, but its request counts.
    let mut looks = 0;
    let asked = models.each_ref().map(|(model, _)| model);
    let wait = new.acquire(35, || {
        looks += 1;
        assert_eq!(asked.map(Tenant::is_asked), [false, true, false]);
        false
    });
    assert_eq!((wait, looks), (Ok(Wait::Abandoned), 1));
    assert_eq!(asked.map(Tenant::is_asked), [false; 3], "nobody waits any more");
    let woken = models.each_ref().map(|(_, woken)| woken.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1, 0]);
}

#[test]
fn what_can_wait_takes_only_free_memory_and_is_asked_last() {
    let memory = Memory::new(Some(100));
    let ((model, _), (patient, _)) = (tenant(&memory, "model"), tenant(&memory, "patient"));
    model.acquire(60, || true).unwrap();
    assert!(!patient.try_acquire(41));
    assert!(!model.is_asked());
    assert!(patient.try_acquire(40));
    assert_eq!(memory.held(), 100);
    model.touch();
    for (bytes, are_asked) in [(60, [true, false]), (61, [true, true])] {
        let (new, _) = tenant(&memory, "new");
        let look = || {
            assert_eq!([model.is_asked(), patient.is_asked()], are_asked, "{bytes}");
            assert!(!tenant(&memory, "late").0.try_acquire(0), "others wait");
            false
        };
        assert_eq!(new.acquire(bytes, look), Ok(Wait::Abandoned));
    }
    drop(patient);
    assert_eq!(memory.held(), 60);
}

#[test]
fn an_idle_model_gives_way_after_a_pause_and_a_busy_one_after_its_turn() {
    let memory = Memory::new(Some(10));
    let (first, _) = tenant(&memory, "first");
    first.acquire(10, || true).unwrap();
    let load = Duration::from_millis(20);
    assert!(!first.must_yield(Some(load), load), "nobody waits");
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            let (second, _) = tenant(&memory, "second");
            second.acquire(10, || true).unwrap();
        });
        while !first.is_asked() {
            thread::sleep(Duration::from_millis(1));
        }
        let asked = Instant::now();
        assert!(!first.must_yield(Some(NOW), load), "work may be on its way");
        assert!(first.must_yield(Some(load), load));
        while !first.must_yield(None, load) {
            thread::sleep(Duration::from_millis(1));
        }
        let turn = asked.elapsed();
        assert!(turn > load * LOADS_PER_TURN / 2, "its turn lasted only {turn:?}");
        first.release();
        second.join().unwrap();
    });
    assert_eq!(memory.held(), 0);
}

#[test]
fn a_turn_begins_when_the_model_is_loaded() {
    let memory = Memory::new(Some(10));
    let (first, _) = tenant(&memory, "first");
    first.acquire(10, || true).unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| tenant(&memory, "second").0.acquire(10, || true));
        while !first.is_asked() {
            thread::sleep(Duration::from_millis(1));
        }
        // It takes longer to load than its turn lasts.
        thread::sleep(2 * TURN.0);
        let loaded = Instant::now();
        first.correct(10);
        while !first.must_yield(None, NOW) {
            thread::sleep(Duration::from_millis(1));
        }
        let turn = loaded.elapsed();
        assert!(turn >= TURN.0, "its turn lasted only {turn:?}");
        first.release();
        assert_eq!(second.join().unwrap(), Ok(Wait::Over));
    });
}

#[test]
fn models_wait_in_the_order_in_which_they_asked() {
    let memory = Memory::new(Some(10));
    let (holder, _) = tenant(&memory, "holder");
    holder.acquire(6, || true).unwrap();
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        // The second one would fit beside the holder, but must not overtake. It does not fit beside the first.
        for (name, bytes) in [("large", 8), ("small", 3)] {
            let (memory, order) = (&memory, &order);
            let waiting = memory.0.lock().waiting.len();
            scope.spawn(move || {
                let (model, _) = tenant(memory, name);
                model.acquire(bytes, || true).unwrap();
                order.lock().unwrap().push(name);
            });
            while memory.0.lock().waiting.len() == waiting {
                thread::sleep(Duration::from_millis(1));
            }
        }
        thread::sleep(2 * LOOK);
        assert!(order.lock().unwrap().is_empty());
        holder.release();
    });
    assert_eq!(*order.lock().unwrap(), ["large", "small"]);
}

#[test]
fn a_model_that_shrank_need_not_give_way_to_one_that_fits_now() {
    let memory = Memory::new(Some(10));
    let ((large, _), (waiting, _)) = (tenant(&memory, "large"), tenant(&memory, "waiting"));
    large.acquire(10, || true).unwrap();
    let mut was_asked = false;
    let wait = waiting.acquire(4, || {
        was_asked = large.is_asked();
        large.correct(6);
        assert!(!large.is_asked());
        true
    });
    assert_eq!((wait, was_asked), (Ok(Wait::Over), true));
    assert_eq!(memory.held(), 10);
}

#[test]
fn nothing_loads_beside_a_load_that_is_measured() {
    let memory = Memory::new(None);
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let load = |is_measured| {
        let _load = memory.begin_load(is_measured);
        let beside = now.fetch_add(1, Ordering::SeqCst);
        most.fetch_max(beside, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        if is_measured {
            assert_eq!((beside, now.load(Ordering::SeqCst)), (0, 1));
        }
        now.fetch_sub(1, Ordering::SeqCst);
    };
    thread::scope(|scope| {
        for is_measured in [true, false, true, false] {
            scope.spawn(move || load(is_measured));
        }
    });
    // Those that nobody measures do not wait for each other.
    let first = memory.begin_load(false);
    drop(memory.begin_load(false));
    drop(first);
}

#[test]
fn a_model_that_comes_back_waits_only_a_while_for_a_measured_load() {
    let memory = Memory::new(None);
    let patience = Duration::from_millis(50);
    let measured = memory.begin_load(true);
    let started = Instant::now();
    let beside = memory.begin_load_again(patience);
    assert!(matches!(beside, Load::BesideMeasured(_)) && started.elapsed() >= patience);
    drop(measured);
    assert_eq!(memory.spoiled(), None, "the next measurement would include it");
    drop(beside);
    assert!(matches!(memory.begin_load_again(patience), Load::Unmeasured(_)));
    assert_eq!(memory.spoiled(), Some(1));
}

#[test]
fn builds_run_one_at_a_time_and_after_the_loads() {
    let memory = Memory::new(None);
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        let load = memory.begin_load(true);
        for _ in 0..2 {
            scope.spawn(|| {
                let build = memory.begin_build();
                assert!(memory.is_building());
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                thread::sleep(Duration::from_millis(20));
                running.fetch_sub(1, Ordering::SeqCst);
                drop(build);
            });
        }
        thread::sleep(builds::QUIET + Duration::from_millis(200));
        assert!(!memory.is_building(), "a load is measured");
        drop(load);
    });
    assert_eq!((memory.builds(), memory.is_building()), (2, false));
}

#[test]
fn a_model_that_grew_over_the_limit_pushes_others_out() {
    let memory = Memory::new(Some(10));
    let ((one, _), (other, _)) = (tenant(&memory, "one"), tenant(&memory, "other"));
    one.acquire(4, || true).unwrap();
    other.acquire(4, || true).unwrap();
    one.correct(8);
    assert!(other.is_asked() && !one.is_asked());
    assert!(other.must_yield(Some(LONGEST_PAUSE), NOW));
    // Somebody who waits and gives up changes nothing about it.
    let (third, _) = tenant(&memory, "third");
    assert_eq!(third.acquire(1, || false), Ok(Wait::Abandoned));
    assert!(other.is_asked());
    other.release();
    assert!(!other.is_asked());
    assert_eq!(memory.held(), 8);
    assert!(!one.is_asked(), "the memory in use is within the limit again");
}
