import copy
import unittest

from checks import kubernetes


class ManifestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.objects = kubernetes.rendered("gpu")

    def wrong(self, kind, name, change):
        objects = copy.deepcopy(self.objects)
        change(next(one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name))
        return " ".join(kubernetes.wrong(objects, "cuda"))

    def worker(self, change):
        return self.wrong(
            "Deployment", "retouch-worker", lambda one: change(one["spec"]["template"]["spec"], one["spec"]["template"]["spec"]["containers"][0])
        )

    def scaling(self, change):
        return self.wrong("ScaledObject", "retouch-worker", lambda one: change(one["spec"]))

    def test_every_overlay_passes(self):
        self.assertEqual(kubernetes.check(), [])

    def test_invalid_fields_are_found(self):
        self.assertIn("'root' is not of type", self.worker(lambda pod, container: pod["securityContext"].update(runAsUser="root")))
        self.assertIn("livenesProbe", self.worker(lambda pod, container: container.update(livenesProbe={})))

    def test_invalid_fields_of_keda_objects_are_found(self):
        self.assertIn("'cooldownSeconds' was unexpected", self.scaling(lambda spec: spec.update(cooldownSeconds=1)))
        self.assertIn("3 is not of type 'string'", self.scaling(lambda spec: spec["triggers"][0]["metadata"].update(targetQueryValue=3)))

    def test_a_pod_that_is_not_hardened_is_found(self):
        for change, message in (
            (lambda pod, container: pod["securityContext"].pop("runAsNonRoot"), "may run as root"),
            (lambda pod, container: pod.pop("automountServiceAccountToken"), "token of a service account"),
            (lambda pod, container: container["securityContext"].pop("readOnlyRootFilesystem"), "root file system is writable"),
            (lambda pod, container: container["securityContext"]["capabilities"].update(drop=["NET_RAW"]), "keeps capabilities"),
            (lambda pod, container: container["resources"]["limits"].pop("memory"), "no memory limit"),
            (lambda pod, container: container.update(image="localhost/retouch/worker"), "no fixed version"),
            (lambda pod, container: container.update(image="retouch/worker:0.1.0"), "comes from Docker Hub"),
            (lambda pod, container: container.pop("livenessProbe"), "no liveness or startup probe"),
        ):
            self.assertIn(message, self.worker(change))

    def test_the_pod_of_a_cron_job_is_checked_too(self):
        def change(one):
            one["spec"]["jobTemplate"]["spec"]["template"]["spec"]["securityContext"].pop("runAsNonRoot")

        self.assertIn("retouch-backup: it may run as root", self.wrong("CronJob", "retouch-backup", change))

    def test_the_pod_of_the_backup_has_the_secrets_to_repeat_deletions(self):
        job = next(one for one in self.objects if one["metadata"]["name"] == "retouch-backup" and one["kind"] == "CronJob")
        [container] = kubernetes.pod_of(job)["spec"]["containers"]
        # `retouch-api admin deletions` requires them.
        self.assertLessEqual({"DATABASE_URL_FILE", "RETOUCH_URL_SECRET_FILE"}, {variable["name"] for variable in container["env"]})

    def test_every_pod_may_reach_the_database_and_the_bucket(self):
        policy = next(one for one in self.objects if one["metadata"]["name"] == "retouch-reaches-its-places")
        [allowed] = policy["spec"]["podSelector"]["matchExpressions"]
        names = [pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in map(kubernetes.pod_of, self.objects) if pod]
        self.assertIn("retouch-audit", names)
        self.assertEqual(set(allowed["values"]), set(names))

    def test_probes_that_depend_on_other_services_are_found(self):
        def change(one):
            one["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"] = "/readyz"

        self.assertIn("one outage would take down all pods", self.wrong("Deployment", "retouch-api", change))

    def test_a_secret_that_is_not_mounted_is_found(self):
        added = {"name": "STRIPE_SECRET_KEY_FILE", "value": "/run/secrets/retouch/stripe_secret_key"}
        self.assertIn("which is not mounted", self.worker(lambda pod, container: container["env"].append(added)))

    def test_a_worker_has_one_device_and_time_to_drain(self):
        limits = lambda container: container["resources"]["limits"]
        self.assertIn("exactly one", self.worker(lambda pod, container: limits(container).update({"nvidia.com/gpu": 2})))
        self.assertIn("no GPU", self.worker(lambda pod, container: limits(container).pop("nvidia.com/gpu")))
        self.assertIn("needs 120 s to drain", self.worker(lambda pod, container: pod.update(terminationGracePeriodSeconds=120)))

    def test_harmful_scaling_is_found(self):
        self.assertIn("during their startup, which takes up to 300 s", self.scaling(lambda spec: spec.update(cooldownPeriod=300)))
        metadata = lambda spec: spec["triggers"][0]["metadata"]
        self.assertIn("a worker runs 3 jobs", self.scaling(lambda spec: metadata(spec).update(targetQueryValue="10")))
        wrong = "select count(*) from jobs where state in ('waiting') and due_at <= now()"
        findings = self.scaling(lambda spec: metadata(spec).update(query=wrong))
        self.assertIn("the unknown state waiting", findings)
        self.assertIn("due_at, which is not a column", findings)

    def test_a_selector_without_pods_is_found(self):
        change = lambda one: one["spec"]["selector"]["matchLabels"].update({"app.kubernetes.io/name": "worker"})
        self.assertIn("no pod has the labels", self.wrong("PodDisruptionBudget", "retouch-worker", change))
