//! Gauges about workers. A worker or model that disappears stays at 0, so that an alert can fire on it.

use std::collections::HashSet;

use retouch_core::workers::Worker;

/// Every device a worker can run on.
const DEVICES: [&str; 2] = ["cpu", "cuda"];

/// The label sets reported so far.
#[derive(Debug, Default)]
pub struct WorkerGauges {
    workers: HashSet<[String; 4]>,
    models: HashSet<[String; 4]>,
}

impl WorkerGauges {
    /// Sets the gauges of `live` workers to 1 and those of all others to 0.
    pub fn update(&mut self, live: &[Worker]) {
        for device in DEVICES {
            let count = live.iter().filter(|worker| worker.device == device).count();
            metrics::gauge!("retouch_workers", "device" => device).set(count as f64);
        }
        let workers: HashSet<_> = live
            .iter()
            .map(|worker| {
                let Worker { name, device, hardware, version, .. } = worker.clone();
                [name, device, hardware, version]
            })
            .collect();
        self.workers.extend(workers.iter().cloned());
        for labels in &self.workers {
            let [worker, device, hardware, version] = labels.clone();
            let info = metrics::gauge!(
                "retouch_worker_info",
                "worker" => worker, "device" => device, "hardware" => hardware, "version" => version
            );
            info.set(f64::from(u8::from(workers.contains(labels))));
        }
        let models: HashSet<_> = live
            .iter()
            .flat_map(|worker| {
                worker.models.iter().map(|served| {
                    [
                        worker.name.clone(),
                        served.tool.as_str().to_owned(),
                        served.tier.as_str().to_owned(),
                        served.model.clone(),
                    ]
                })
            })
            .collect();
        self.models.extend(models.iter().cloned());
        for labels in &self.models {
            let [worker, tool, tier, model] = labels.clone();
            metrics::gauge!("retouch_worker_model", "worker" => worker, "tool" => tool, "tier" => tier, "model" => model)
                .set(f64::from(u8::from(models.contains(labels))));
        }
    }
}
