//! The workers as metrics. What was shown once is shown as 0 when it is gone: an alert sees it go.

use std::collections::HashSet;

use retouch_core::workers::Worker;

/// Every device that a worker can be on.
const DEVICES: [&str; 2] = ["cpu", "cuda"];

/// What has been shown so far.
#[derive(Debug, Default)]
pub struct Nodes {
    workers: HashSet<[String; 4]>,
    models: HashSet<[String; 4]>,
}

impl Nodes {
    /// Shows those that live now.
    pub fn show(&mut self, living: &[Worker]) {
        for device in DEVICES {
            let on_it = living.iter().filter(|worker| worker.device == device).count();
            metrics::gauge!("retouch_workers", "device" => device).set(on_it as f64);
        }
        let workers: HashSet<_> = living
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
        let models: HashSet<_> = living
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
