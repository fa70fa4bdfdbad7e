"""Checks the manifests of `deploy/kubernetes` without a cluster.

`kubectl kustomize` renders them, kubernetes-validate checks them against the schemas of Kubernetes, and keda.schema.json
covers KEDA. This module checks what no schema can: hardening, references between objects, and scaling.
"""

import functools
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from common.config import REPO

from . import linters, validators

FOLDER = REPO / "deploy" / "kubernetes"
# The oldest version with all features in use (`preStop.sleep`), and the newest one with schemas.
VERSIONS = ("1.30", "1.37")
SECRET = "retouch"
# All keys of the secret, see deploy/kubernetes/README.md.
SECRET_KEYS = {
    *("database_url", "keda_database_url", "redis_url", "s3_access_key_id", "s3_secret_access_key", "url_secret"),
    *("credentials_chain", "credentials_key", "stripe_secret_key", "stripe_webhook_secret"),
}
# DRAIN_TIMEOUT, TASKS_GRACE and FLUSH_TIMEOUT of the API, in seconds.
API_STOP = 28
DEVICES = {"cpu": "cpu", "gpu": "cuda", "mig": "cuda"}


def check():
    """Checks every overlay. Returns one sentence for each error."""
    findings = []
    for overlay in sorted(path.name for path in (FOLDER / "overlays").iterdir()):
        try:
            objects = rendered(overlay)
        except subprocess.CalledProcessError as error:
            findings.append(f"{overlay}: {error.stderr.strip()}")
        else:
            findings += [f"{overlay}: {finding}" for finding in wrong(objects, DEVICES.get(overlay))]
    return findings


def rendered(overlay):
    """Returns the objects of an overlay with all components."""
    with tempfile.TemporaryDirectory() as folder:
        relative = lambda path: os.path.relpath(path, Path(folder).resolve())
        parts = {
            "resources": [relative(FOLDER / "overlays" / overlay)],
            "components": [relative(path) for path in sorted((FOLDER / "components").iterdir())],
        }
        (Path(folder) / "kustomization.yaml").write_text(json.dumps(parts))
        made = subprocess.run([linters.program("kubectl"), "kustomize", folder], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    return [one for one in validators.yaml().safe_load_all(made.stdout) if one]


def pod_of(one):
    """Returns the template of the pods that an object creates; None if it creates none."""
    spec = one.get("spec", {})
    return spec["jobTemplate"]["spec"]["template"] if one["kind"] == "CronJob" else spec.get("template")


def wrong(objects, device):
    findings = []
    for one in objects:
        findings += schema_errors(json.dumps(one, sort_keys=True))
    if findings:
        # The other checks rely on valid objects.
        return findings
    for owner in filter(pod_of, objects):
        findings += wrong_pods(owner, objects)
    findings += wrong_selectors(objects)
    findings += wrong_worker(objects, device) + wrong_api(objects)
    return findings + wrong_scaling(objects)


@functools.cache
def schema_errors(text):
    """Validates an object with its schema. Cached, because overlays share most objects."""
    one = json.loads(text)
    name = f"{one['kind']} {one['metadata']['name']}"
    if one["apiVersion"].startswith("keda.sh/"):
        return keda_errors(one, name)
    kubernetes_validate = validators.load("kubernetes_validate")
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            return [f"{name}: {error.message} (Kubernetes {version})"]
        except kubernetes_validate.SchemaNotFoundError:
            return [f"{name}: Kubernetes {version} has no {one['apiVersion']} {one['kind']}"]
    return []


def keda_errors(one, name):
    jsonschema = validators.load("jsonschema")
    schema = json.loads((FOLDER / "keda.schema.json").read_text())
    if one["kind"] not in schema["$defs"]:
        return [f"{name}: keda.schema.json has no such kind"]
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{one['kind']}", "$defs": schema["$defs"]})
    return [f"{name}: {'.'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(one)]


def wrong_pods(owner, objects):
    """Checks that pods are hardened, have resource limits, and refer only to existing objects."""
    name, spec = owner["metadata"]["name"], pod_of(owner)["spec"]
    maps = {one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"}
    claims = {one["metadata"]["name"] for one in objects if one["kind"] == "PersistentVolumeClaim"}
    findings = []

    def must(holds, what):
        if not holds:
            findings.append(f"{name}: {what}")

    pod = spec.get("securityContext", {})
    must(pod.get("runAsNonRoot") is True and pod.get("runAsUser", 0) > 0, "it may run as root")
    must(pod.get("seccompProfile", {}).get("type") == "RuntimeDefault", "it has no seccomp profile")
    must(spec.get("automountServiceAccountToken") is False, "it mounts the token of a service account")
    mounted = {}
    for volume in spec.get("volumes", []):
        if secret := volume.get("secret"):
            must(secret["secretName"] == SECRET, f"it mounts an unknown secret {secret['secretName']}")
            mounted[volume["name"]] = {item["key"] for item in secret.get("items", [])} or SECRET_KEYS
            must(mounted[volume["name"]] <= SECRET_KEYS, f"it mounts keys that the secret lacks: {mounted[volume['name']] - SECRET_KEYS}")
        if claim := volume.get("persistentVolumeClaim"):
            must(claim["claimName"] in claims, f"it mounts an unknown volume claim {claim['claimName']}")
    for container in spec["containers"]:
        own = container.get("securityContext", {})
        must(own.get("readOnlyRootFilesystem") is True, "its root file system is writable")
        must(own.get("allowPrivilegeEscalation") is False and not own.get("privileged"), "it may gain privileges")
        must(own.get("capabilities") == {"drop": ["ALL"]}, "it keeps capabilities")
        resources = container.get("resources", {})
        must("memory" in resources.get("limits", {}), "it has no memory limit")
        must({"cpu", "memory"} <= resources.get("requests", {}).keys(), "it has no CPU or memory request")
        must(re.search(r":\d+\.\d+\.\d+$|@sha256:", container["image"]), f"{container['image']} has no fixed version")
        must(re.match(r"localhost/|[\w-]+\.", container["image"]), f"{container['image']} comes from Docker Hub, where its account is not ours")
        for source in container.get("envFrom", []):
            must(source.get("configMapRef", {}).get("name") in maps, "it reads settings from an unknown ConfigMap")
        for variable in container.get("env", []):
            path = variable.get("value", "")
            if variable["name"].endswith("_FILE") and path.startswith("/run/secrets/"):
                keys = [mounted.get(mount["name"], set()) for mount in container["volumeMounts"] if path.startswith(mount["mountPath"] + "/")]
                must(any(path.rpartition("/")[2] in found for found in keys), f"{variable['name']} names {path}, which is not mounted")
        if owner["kind"] == "Deployment":
            must({"startupProbe", "livenessProbe"} <= container.keys(), "it has no liveness or startup probe")
            paths = {probe.get("httpGet", {}).get("path") for name, probe in container.items() if name.endswith("Probe")}
            must("/readyz" not in paths, "its probes depend on other services, so one outage would take down all pods")
    return findings


def wrong_selectors(objects):
    """Finds selectors that match no pod."""
    pods = [pod_of(one)["metadata"]["labels"] for one in objects if pod_of(one)]
    findings = []
    for one in objects:
        spec, kind = one.get("spec", {}), one["kind"]
        selector = {"Service": spec.get("selector")}.get(kind) or spec.get("podSelector") or spec.get("selector") or {}
        labels = selector.get("matchLabels", selector if kind == "Service" else {})
        if labels and not any(labels.items() <= pod.items() for pod in pods):
            findings.append(f"{kind} {one['metadata']['name']}: no pod has the labels {labels}")
    return findings


def deployment(objects, name):
    return next(one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] == name)


def setting(objects, container, name):
    for variable in container.get("env", []):
        if variable["name"] == name:
            return variable.get("value", "")
    settings = next(one for one in objects if one["kind"] == "ConfigMap")
    return settings["data"].get(name, "")


def wrong_worker(objects, device):
    """Checks that the device of a worker matches its GPU, and that it has time to drain."""
    spec = deployment(objects, "retouch-worker")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    limits = container["resources"]["limits"]
    gpus = {name: count for name, count in limits.items() if name.startswith("nvidia.com/")}
    findings = []
    configured = setting(objects, container, "RETOUCH_DEVICE")
    if device and configured != device:
        findings.append(f"retouch-worker: RETOUCH_DEVICE is {configured!r}, not {device}")
    if (configured == "cuda") != (list(map(int, gpus.values())) == [1]):
        findings.append(f"retouch-worker: RETOUCH_DEVICE is {configured!r} with {gpus or 'no GPU'}; a worker uses exactly one GPU")
    drain = int(setting(objects, container, "RETOUCH_DRAIN_SECS") or 0)
    if spec["terminationGracePeriodSeconds"] <= drain + 5:
        findings.append(f"retouch-worker: it is killed after {spec['terminationGracePeriodSeconds']} s, but needs {drain} s to drain and 5 s more")
    return findings


def wrong_api(objects):
    """Checks that the API has time to stop."""
    spec = deployment(objects, "retouch-api")["spec"]["template"]["spec"]
    needed = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] + API_STOP
    if spec["terminationGracePeriodSeconds"] <= needed:
        return [f"retouch-api: it is killed after {spec['terminationGracePeriodSeconds']} s, but may need {needed} s to stop"]
    return []


def wrong_scaling(objects):
    findings = []
    for one in (one for one in objects if one["kind"] == "ScaledObject"):
        spec = one["spec"]
        worker = deployment(objects, spec["scaleTargetRef"]["name"])
        container = worker["spec"]["template"]["spec"]["containers"][0]
        start = container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"]
        down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
        if min(spec["cooldownPeriod"], down) <= start:
            findings.append(f"{one['metadata']['name']}: it may remove workers during their startup, which takes up to {start} s")
        if "replicas" in worker["spec"]:
            findings.append(f"{worker['metadata']['name']}: its replicas conflict with the autoscaler")
        authentications = {other["metadata"]["name"]: other for other in objects if other["kind"] == "TriggerAuthentication"}
        for trigger in spec["triggers"]:
            slots = setting(objects, container, "RETOUCH_JOBS_IN_FLIGHT")
            if trigger["metadata"]["targetQueryValue"] != slots:
                findings.append(f"{one['metadata']['name']}: its target is {trigger['metadata']['targetQueryValue']}, but a worker runs {slots} jobs")
            known = authentications.get(trigger["authenticationRef"]["name"])
            if not known:
                findings.append(f"{one['metadata']['name']}: {trigger['authenticationRef']['name']} does not exist")
            else:
                keys = {entry["key"] for entry in known["spec"]["secretTargetRef"] if entry["name"] == SECRET}
                if not keys or not keys <= SECRET_KEYS:
                    findings.append(f"{known['metadata']['name']}: the secret has no such key")
            findings += [f"{one['metadata']['name']}: {finding}" for finding in wrong_query(trigger["metadata"]["query"])]
    return findings


def wrong_query(query):
    """Checks that the query uses only columns and states of the schema."""
    schema = (REPO / "migrations" / "0003_jobs.sql").read_text()
    states = re.search(r"constraint jobs_state check \(state in \(([^)]*)\)\)", schema)[1]
    findings = [f"its query uses the unknown state {state}" for state in re.findall(r"'(\w+)'", query) if f"'{state}'" not in states]
    words = set(re.findall(r"[a-z_]+", re.sub(r"'[^']*'", "", query))) - set("select count from jobs where in and now".split())
    return findings + [
        f"its query uses {word}, which is not a column of jobs" for word in sorted(words) if not re.search(rf"^    {word} ", schema, re.M)
    ]
