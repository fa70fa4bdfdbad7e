//! Gauges about workers. A worker or model that disappears goes to 0, so that an alert can fire on it; the exporter drops it
//! after [`super::GAUGE_TIMEOUT`].

use std::collections::HashSet;

use metrics::Gauge;
use retouch_core::workers::Worker;

/// Every device a worker can run on.
const DEVICES: [&str; 2] = ["cpu", "cuda"];

type Labels = [String; 4];

/// The label sets of the workers that were live.
#[derive(Debug, Default)]
pub struct WorkerGauges {
    workers: HashSet<Labels>,
    models: HashSet<Labels>,
}

impl WorkerGauges {
    /// Sets the gauges of `live` workers to 1, and the gauges of workers that have gone since the last call to 0.
    pub fn update(&mut self, live: &[Worker]) {
        for device in DEVICES {
            let count = live.iter().filter(|worker| worker.device == device).count();
            metrics::gauge!("retouch_workers", "device" => device).set(count as f64);
        }
        let workers = live.iter().map(|worker| {
            let Worker { name, device, hardware, version, .. } = worker.clone();
            [name, device, hardware, version]
        });
        replace(
            &mut self.workers,
            workers.collect(),
            |[worker, device, hardware, version]| metrics::gauge!("retouch_worker_info", "worker" => worker, "device" => device, "hardware" => hardware, "version" => version),
        );
        let models = live.iter().flat_map(|worker| {
            worker.models.iter().map(|served| {
                [
                    worker.name.clone(),
                    served.tool.as_str().to_owned(),
                    served.tier.as_str().to_owned(),
                    served.model.clone(),
                ]
            })
        });
        replace(
            &mut self.models,
            models.collect(),
            |[worker, tool, tier, model]| metrics::gauge!("retouch_worker_model", "worker" => worker, "tool" => tool, "tier" => tier, "model" => model),
        );
    }
}

fn replace(before: &mut HashSet<Labels>, live: HashSet<Labels>, gauge: impl Fn(Labels) -> Gauge) {
    for gone in before.difference(&live) {
        gauge(gone.clone()).set(0.0);
    }
    for labels in &live {
        gauge(labels.clone()).set(1.0);
    }
    *before = live;
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use chrono::DateTime;
    use retouch_core::{WorkerId, telemetry};

    use super::*;

    fn worker(name: &str) -> Worker {
        Worker {
            id: WorkerId::new(),
            name: name.into(),
            device: "cpu".into(),
            hardware: "16 cores".into(),
            models: Vec::new(),
            problems: Vec::new(),
            slots: 1,
            version: "1".into(),
            seen_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_worker_that_is_gone_goes_to_0_and_is_dropped_later() {
        let timeout = Duration::from_secs(1);
        let recorder = telemetry::exporter(Some(timeout)).expect("valid").build_recorder();
        let (exporter, mut gauges) = (recorder.handle(), WorkerGauges::default());
        let mut shown = |live: &[Worker]| {
            metrics::with_local_recorder(&recorder, || gauges.update(live));
            let text = exporter.render();
            let values = ["a", "b"].map(|name| {
                let line = text.lines().find(|line| line.contains(&format!("worker=\"{name}\"")));
                line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
            });
            values.map(Option::unwrap_or_default)
        };
        assert_eq!(shown(&[worker("a"), worker("b")]), ["1", "1"]);
        assert_eq!(shown(&[worker("b")]), ["0", "1"]);
        assert_eq!(shown(&[worker("b")]), ["0", "1"]);
        sleep(timeout + Duration::from_millis(100));
        assert_eq!(shown(&[worker("b")]), ["", "1"]);
        assert_eq!(shown(&[worker("a")]), ["1", "0"], "it is back");
    }
}
