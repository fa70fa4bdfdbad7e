"""The manifests of `deploy/kubernetes`, as an API server would judge them, and as we want them: without a cluster.

`kubectl kustomize` makes what would be applied; kubernetes-validate holds it against Kubernetes's own schemas, a schema
of ours against what KEDA takes; the rest is what neither of them can know.
"""

import functools
import json
import re
import shutil
import subprocess

from common.config import REPO
from common.console import line

from . import validators

FOLDER = REPO / "deploy" / "kubernetes"
# The oldest that has all we use (`preStop.sleep`), and the newest whose schemas are at hand.
VERSIONS = ("1.30", "1.37")
SECRET = "retouch"
# Everything that may be in the secret; deploy/kubernetes/README.md makes it.
SECRET_KEYS = {
    *("database_url", "redis_url", "s3_access_key_id", "s3_secret_access_key", "url_secret"),
    *("stripe_secret_key", "stripe_webhook_secret"),
}
DEVICES = {"cpu": "cpu", "gpu": "cuda", "mig": "cuda"}


def check():
    """Every overlay; returns one sentence for each thing that is wrong."""
    if not shutil.which("kubectl"):
        line("  kubectl is not here: the manifests were not looked at (any kubectl from 1.30 on will do)")
        return []
    findings = []
    for overlay in sorted(path.name for path in (FOLDER / "overlays").iterdir()):
        made = subprocess.run(
            ["kubectl", "kustomize", str(FOLDER / "overlays" / overlay)], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if made.returncode:
            findings.append(f"{overlay}: {made.stderr.strip()}")
            continue
        objects = [one for one in validators.yaml().safe_load_all(made.stdout) if one]
        findings += [f"{overlay}: {finding}" for finding in wrong(objects, DEVICES.get(overlay))]
    return findings


def wrong(objects, device):
    findings = []
    for one in objects:
        findings += wrong_to_a_server(json.dumps(one, sort_keys=True))
    if findings:
        # Whatever follows may lean on what is wrong here.
        return findings
    for pod_of in (one for one in objects if one["kind"] in ("Deployment", "Job")):
        findings += wrong_pods(pod_of, objects)
    findings += wrong_selectors(objects)
    findings += wrong_worker(objects, device)
    return findings + wrong_scaling(objects)


@functools.cache
def wrong_to_a_server(text):
    """Overlays share most of their objects: each is judged once."""
    one = json.loads(text)
    name = f"{one['kind']} {one['metadata']['name']}"
    if one["apiVersion"].startswith("keda.sh/"):
        return wrong_to_keda(one, name)
    kubernetes_validate = validators.load("kubernetes_validate")
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            return [f"{name}: {error.message} (Kubernetes {version})"]
        except kubernetes_validate.SchemaNotFoundError:
            return [f"{name}: Kubernetes {version} has no {one['apiVersion']} {one['kind']}"]
    return []


def wrong_to_keda(one, name):
    jsonschema = validators.load("jsonschema")
    schema = json.loads((FOLDER / "keda.schema.json").read_text())
    if one["kind"] not in schema["$defs"]:
        return [f"{name}: keda.schema.json does not know this kind"]
    judge = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{one['kind']}", "$defs": schema["$defs"]})
    return [f"{name}: {'.'.join(map(str, error.path))}: {error.message}" for error in judge.iter_errors(one)]


def wrong_pods(owner, objects):
    """Hardened, bounded, and told of nothing that does not exist."""
    name, spec = owner["metadata"]["name"], owner["spec"]["template"]["spec"]
    maps = {one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"}
    claims = {one["metadata"]["name"] for one in objects if one["kind"] == "PersistentVolumeClaim"}
    findings = []

    def must(holds, what):
        if not holds:
            findings.append(f"{name}: {what}")

    pod = spec.get("securityContext", {})
    must(pod.get("runAsNonRoot") is True and pod.get("runAsUser", 0) > 0, "it may run as root")
    must(pod.get("seccompProfile", {}).get("type") == "RuntimeDefault", "it has no seccomp profile")
    must(spec.get("automountServiceAccountToken") is False, "it is given the token of a service account")
    mounted = {}
    for volume in spec.get("volumes", []):
        if secret := volume.get("secret"):
            must(secret["secretName"] == SECRET, f"it mounts an unknown secret {secret['secretName']}")
            mounted[volume["name"]] = {item["key"] for item in secret.get("items", [])} or SECRET_KEYS
            must(mounted[volume["name"]] <= SECRET_KEYS, f"it mounts keys that the secret lacks: {mounted[volume['name']] - SECRET_KEYS}")
        if claim := volume.get("persistentVolumeClaim"):
            must(claim["claimName"] in claims, f"it mounts an unknown volume {claim['claimName']}")
    for container in spec["containers"]:
        own = container.get("securityContext", {})
        must(own.get("readOnlyRootFilesystem") is True, "it may write everywhere")
        must(own.get("allowPrivilegeEscalation") is False and not own.get("privileged"), "it may gain rights")
        must(own.get("capabilities") == {"drop": ["ALL"]}, "it keeps capabilities")
        resources = container.get("resources", {})
        must("memory" in resources.get("limits", {}), "its memory is not limited")
        must({"cpu", "memory"} <= resources.get("requests", {}).keys(), "it requests no processor or no memory")
        must(re.search(r":\d+\.\d+\.\d+$|@sha256:", container["image"]), f"{container['image']} is of no fixed version")
        for source in container.get("envFrom", []):
            must(source.get("configMapRef", {}).get("name") in maps, "it reads settings from what is not there")
        for variable in container.get("env", []):
            path = variable.get("value", "")
            if variable["name"].endswith("_FILE") and path.startswith("/run/secrets/"):
                keys = [mounted.get(mount["name"], set()) for mount in container["volumeMounts"] if path.startswith(mount["mountPath"] + "/")]
                must(any(path.rpartition("/")[2] in found for found in keys), f"{variable['name']} names {path}, which is not mounted")
        if owner["kind"] == "Deployment":
            must({"startupProbe", "livenessProbe"} <= container.keys(), "nobody asks whether it lives")
            asked = {probe.get("httpGet", {}).get("path") for name, probe in container.items() if name.endswith("Probe")}
            must("/readyz" not in asked, "one place that is away would take all of its pods away")
    return findings


def wrong_selectors(objects):
    """A selector that finds nothing is silent."""
    pods = [one["spec"]["template"]["metadata"]["labels"] for one in objects if one["kind"] in ("Deployment", "Job")]
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
    """The device it is told to use is the one it is given, and it may drain."""
    spec = deployment(objects, "retouch-worker")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    limits = container["resources"]["limits"]
    gpus = {name: count for name, count in limits.items() if name.startswith("nvidia.com/")}
    findings = []
    told = setting(objects, container, "RETOUCH_DEVICE")
    if device and told != device:
        findings.append(f"retouch-worker: RETOUCH_DEVICE is {told!r}, not {device}")
    if (told == "cuda") != (list(map(int, gpus.values())) == [1]):
        findings.append(f"retouch-worker: told {told!r}, it is given {gpus or 'no GPU'}; one process is for exactly one")
    drain = int(setting(objects, container, "RETOUCH_DRAIN_SECS") or 0)
    if spec["terminationGracePeriodSeconds"] <= drain + 5:
        findings.append(f"retouch-worker: it is killed after {spec['terminationGracePeriodSeconds']} s, and may drain for {drain} s and 5 more")
    return findings


def wrong_scaling(objects):
    findings = []
    for one in (one for one in objects if one["kind"] == "ScaledObject"):
        spec = one["spec"]
        worker = deployment(objects, spec["scaleTargetRef"]["name"])
        container = worker["spec"]["template"]["spec"]["containers"][0]
        start = container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"]
        down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
        if min(spec["cooldownPeriod"], down) <= start:
            findings.append(f"{one['metadata']['name']}: workers may go before the {start} s are over that a start may take")
        if "replicas" in worker["spec"]:
            findings.append(f"{worker['metadata']['name']}: its replicas would fight with the autoscaler")
        authentications = {other["metadata"]["name"]: other for other in objects if other["kind"] == "TriggerAuthentication"}
        for trigger in spec["triggers"]:
            slots = setting(objects, container, "RETOUCH_JOBS_IN_FLIGHT")
            if trigger["metadata"]["targetQueryValue"] != slots:
                findings.append(f"{one['metadata']['name']}: its target is {trigger['metadata']['targetQueryValue']}, a worker takes {slots} jobs")
            known = authentications.get(trigger["authenticationRef"]["name"])
            if not known:
                findings.append(f"{one['metadata']['name']}: {trigger['authenticationRef']['name']} is not there")
            else:
                keys = {entry["key"] for entry in known["spec"]["secretTargetRef"] if entry["name"] == SECRET}
                if not keys or not keys <= SECRET_KEYS:
                    findings.append(f"{known['metadata']['name']}: the secret has no such key")
            findings += [f"{one['metadata']['name']}: {finding}" for finding in wrong_query(trigger["metadata"]["query"])]
    return findings


def wrong_query(query):
    """Whether the query speaks of columns and states that the schema has."""
    schema = (REPO / "migrations" / "0003_jobs.sql").read_text()
    states = re.search(r"constraint jobs_state check \(state in \(([^)]*)\)\)", schema)[1]
    findings = [f"its query asks for the state {state}, which no job is in" for state in re.findall(r"'(\w+)'", query) if f"'{state}'" not in states]
    words = set(re.findall(r"[a-z_]+", re.sub(r"'[^']*'", "", query))) - set("select count from jobs where in and now".split())
    return findings + [f"its query names {word}, which is no column of jobs" for word in sorted(words) if not re.search(rf"^    {word} ", schema, re.M)]
