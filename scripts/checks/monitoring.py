"""Checks the alerts, the dashboards, the runbooks and the list of metrics.

If a metric is renamed, its panels become empty and its alerts stop firing, silently. So every metric and label in
`deploy/monitoring` must be one that the code reports. `docs/metrics.md` must have exactly these.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass

from common import made_once
from common.config import CACHE, REPO
from common.console import Problem, line, run_logged, step
from common.workspace import crates

from . import validators

MONITORING = REPO / "deploy" / "monitoring"
RUNBOOKS = REPO / "docs" / "runbooks"
METRICS = REPO / "docs" / "metrics.md"

# Metrics of other programs, and their labels.
FOREIGN = {
    "up": ("gauge", set()),
    "probe_success": ("gauge", set()),
    "probe_ssl_earliest_cert_expiry": ("gauge", set()),
    "node_filesystem_avail_bytes": ("gauge", {"mountpoint", "fstype", "device"}),
    "node_filesystem_size_bytes": ("gauge", {"mountpoint", "fstype", "device"}),
    "kube_cronjob_created": ("gauge", {"namespace", "cronjob"}),
    "kube_cronjob_status_last_successful_time": ("gauge", {"namespace", "cronjob"}),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", {"gpu", "Hostname", "modelName"}),
    "DCGM_FI_DEV_FB_USED": ("gauge", {"gpu", "Hostname", "modelName"}),
    "DCGM_FI_DEV_FB_FREE": ("gauge", {"gpu", "Hostname", "modelName"}),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", {"gpu", "Hostname", "modelName"}),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", {"gpu", "Hostname", "modelName"}),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", {"gpu", "Hostname", "modelName"}),
    "pg_stat_statements_seconds_total": ("counter", {"user", "datname", "queryid"}),
    "pg_stat_statements_calls_total": ("counter", {"user", "datname", "queryid"}),
    "pg_stat_statements_query_id": ("counter", {"queryid", "query"}),
}
# Labels that Prometheus adds to every series.
EVERYWHERE = {"job", "instance", "le", "node", "host"}

WORDS = set("and or unless by without on ignoring group_left group_right bool offset inf nan".split())
FUNCTIONS_OF_COUNTERS = "rate|irate|increase"


@dataclass(frozen=True)
class Metric:
    kind: str
    labels: frozenset

    @property
    def endings(self):
        return ("_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)


def check():
    """Runs all checks. Returns one sentence for each error."""
    yaml = validators.yaml()
    known = reported()
    alerts = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    tested = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())
    for config in ("prometheus.yml", "prometheus-kubernetes.yml"):
        yaml.safe_load((MONITORING / config).read_text())
    findings = wrong_alerts(alerts, tested, known) + wrong_runbooks(alerts)
    findings += wrong_routes(yaml.safe_load((MONITORING / "alertmanager.yml").read_text()), alerts)
    for board in sorted(MONITORING.glob("*.json")):
        findings += wrong_board(board.name, json.loads(board.read_text()), known)
    return findings + wrong_list(METRICS.read_text(), ours()) + promtool_errors()


def reported():
    """Returns all known metrics by name."""
    others = {name: Metric(kind, frozenset(labels)) for name, (kind, labels) in FOREIGN.items()}
    return {**others, **ours()}


def ours():
    sources = [path for crate in crates() if crate != "standins" for path in sorted((REPO / crate / "src").rglob("*.rs"))]
    metrics = {}
    for source in sources:
        for name, metric in metrics_in(source.read_text()):
            before = metrics.get(name, metric)
            metrics[name] = Metric(metric.kind, before.labels | metric.labels)
    saved = re.findall(r"^# TYPE (\w+) gauge", (REPO / "scripts/ops/backup.py").read_text(), re.M)
    # A service that the page describes writes this one.
    saved += re.findall(r'echo "(retouch_\w+) ', (REPO / "docs/backup.md").read_text())
    metrics |= {name: Metric("gauge", frozenset()) for name in saved}
    return metrics


def metrics_in(source):
    """Yields the metrics in a Rust source, such as `counter!("name", "label" => value)`."""
    for macro in re.finditer(r"\b(counter|gauge|histogram)!\s*\(", source):
        call = up_to_closing(source, macro.end())
        if name := re.match(r'\s*"(\w+)"', call):
            yield name[1], Metric(macro[1], frozenset(re.findall(r'"(\w+)"\s*=>', call)))


def up_to_closing(text, start):
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


def wrong_list(page, known):
    """Compares the tables of metrics in a page with the known metrics."""
    rows = re.findall(r"^\| `(retouch_\w+)` \| (\w+) \| (.*?) \|", page, re.M)
    listed = {name: Metric(kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    return [
        *(f"docs/metrics.md lacks {name}" for name in sorted(known.keys() - listed.keys())),
        *(f"docs/metrics.md lists {name}, which nothing reports" for name in sorted(listed.keys() - known.keys())),
        *(
            f"docs/metrics.md: {name} is a {known[name].kind} with the labels {sorted(known[name].labels)}"
            for name in sorted(listed.keys() & known.keys())
            if listed[name] != known[name]
        ),
    ]


def wrong_expression(where, expression, known):
    """Finds unknown metrics and labels in an expression."""
    findings = []
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    # The variables of the dashboards are durations.
    plain = re.sub(r"\$\w+", "5m", plain)
    used = set()
    for match in re.finditer(r"(?<![\w.$])([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(?!\w|\s*\()", without_label_lists(plain)):
        name, selector = match[1], match[2] or ""
        if name.lower() in WORDS:
            continue
        metric = find(name, known)
        if metric is None:
            findings.append(f"{where}: unknown metric {name}")
            continue
        used |= metric.labels
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            if label not in metric.labels | EVERYWHERE:
                findings.append(f"{where}: {name} has no label {label}")
        if metric.kind == "gauge" and re.search(rf"\b(?:{FUNCTIONS_OF_COUNTERS})\(\s*{name}\b", plain):
            findings.append(f"{where}: {name} is a gauge, which has no rate")
    for labels in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", plain):
        for label in filter(None, (label.strip() for label in labels.split(","))):
            if label not in used | EVERYWHERE:
                findings.append(f"{where}: no metric in it has a label {label}")
    return findings


def without_label_lists(expression):
    """Removes `by (…)` and ranges, which contain no metrics."""
    expression = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", expression)
    return re.sub(r"\[[^\]]*\]|\b\d+(\.\d+)?(ms|[smhdwy])?\b", " ", expression)


def find(name, known):
    for base, metric in known.items():
        if any(name == base + ending for ending in metric.endings):
            return metric
    return None


def rules_of(alerts):
    return [rule for group in alerts["groups"] for rule in group["rules"]]


def wrong_alerts(alerts, tested, known):
    findings = []
    names = [rule["alert"] for rule in rules_of(alerts)]
    fired = {expected["alertname"] for test in tested["tests"] for expected in test["alert_rule_test"] if expected["exp_alerts"]}
    for rule in rules_of(alerts):
        name = rule["alert"]
        findings += wrong_expression(name, rule["expr"], known)
        if rule.get("labels", {}).get("severity") not in ("page", "ticket"):
            findings.append(f"{name}: its severity must be page or ticket")
        if not rule.get("annotations", {}).get("summary"):
            findings.append(f"{name}: it has no summary")
        if names.count(name) > 1:
            findings.append(f"{name}: several alerts have this name")
        if name not in fired:
            findings.append(f"{name}: no test in alerts_test.yml makes it fire")
    return findings


def wrong_routes(config, alerts):
    """Finds matchers of inhibition rules that name no alert."""
    names = {rule["alert"] for rule in rules_of(alerts)}
    matchers = [text for rule in config["inhibit_rules"] for text in (*rule["source_matchers"], *rule["target_matchers"])]
    named = [name for text in matchers for name in re.findall(r"\w+", text.partition("=")[2])]
    return [f"alertmanager.yml: there is no alert {name}" for name in named if name not in names]


def wrong_runbooks(alerts):
    findings, linked = [], {"README.md"}
    contents = (RUNBOOKS / "README.md").read_text()
    for rule in rules_of(alerts):
        name, path = rule["alert"], REPO / rule.get("annotations", {}).get("runbook", "none")
        linked.add(path.name)
        if not path.is_file() or path.parent != RUNBOOKS:
            findings.append(f"{name}: its runbook {path.name} is not in docs/runbooks")
            continue
        text = path.read_text()
        if not text.startswith(f"# {name}\n"):
            findings.append(f"{path.name}: its title is not {name}")
        if "(../../deploy/monitoring/alerts.yml)" not in text:
            findings.append(f"{path.name}: it does not link to the alert")
        severity = rule.get("labels", {}).get("severity", "")
        if f"\n{severity.capitalize()} · " not in text:
            findings.append(f"{path.name}: the line below its title does not start with {severity.capitalize()}")
        if f"| [{name}]({path.name}) | {severity} |" not in contents:
            findings.append(f"docs/runbooks/README.md does not list {path.name} as a {severity}")
    return findings + [f"{page.name}: no alert links to it" for page in sorted(RUNBOOKS.glob("*.md")) if page.name not in linked]


def wrong_board(file, board, known):
    """Checks that Grafana can load a dashboard, and that its panels show existing metrics."""
    findings = []
    for field, kind in {"title": str, "uid": str, "schemaVersion": int, "panels": list, "templating": dict, "time": dict}.items():
        if not isinstance(board.get(field), kind):
            findings.append(f"{file}: {field} is missing or not of type {kind.__name__}")
    if findings:
        return findings
    if not any(variable.get("type") == "datasource" for variable in board["templating"].get("list", [])):
        findings.append(f"{file}: it has no variable for the data source")
    panels = [*board["panels"], *(inner for panel in board["panels"] for inner in panel.get("panels", []))]
    ids = [panel.get("id") for panel in panels]
    findings += [f"{file}: {ids.count(one)} panels have the id {one}" for one in set(ids) if ids.count(one) > 1]
    taken = {}
    for panel in panels:
        where = f"{file}: {panel.get('title') or panel.get('id')}"
        place = panel.get("gridPos", {})
        if not {"x", "y", "w", "h"} <= place.keys() or place["x"] + place["w"] > 24:
            findings.append(f"{where}: its position is missing or outside of the dashboard")
            continue
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if taken.setdefault((x, y), where) != where:
                    findings.append(f"{where}: it overlaps with {taken[x, y]}")
                    taken[x, y] = where
        if panel.get("type") == "row":
            continue
        if panel.get("datasource", {}).get("uid") != "${datasource}":
            findings.append(f"{where}: its data source is not the variable")
        references = [target.get("refId") for target in panel.get("targets", [])]
        if not references or len(set(references)) != len(references):
            findings.append(f"{where}: its targets are missing, or share a refId")
        for target in panel.get("targets", []):
            findings += wrong_expression(where, target.get("expr", ""), known)
    return list(dict.fromkeys(findings))


def promtool_errors():
    """Runs promtool: checks the configuration and tests the alerts."""
    try:
        program = promtool()
    except Problem as problem:
        line(f"  skipped the tests of the alerts. {problem}")
        return []
    commands = [["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]]
    findings = []
    for command in commands:
        ran = subprocess.run([program, *command], cwd=MONITORING, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode:
            findings.append(f"promtool {' '.join(command)}: {(ran.stdout + ran.stderr).strip()}")
    return findings


def promtool():
    """Returns the path of promtool: the installed one, or Debian's, without the service that its package would install."""
    if installed := shutil.which("promtool"):
        return installed

    def make(folder):
        log = CACHE / "logs" / "download-promtool.log"
        with step("Downloading promtool"):
            run_logged(["sh", "-ec", UNPACK_PROMTOOL], str(log), "Downloading promtool", cwd=folder)

    return made_once.folder("promtool", make) / "usr" / "bin" / "promtool"


# In an image, the list of packages may be missing; only root can fetch it.
UNPACK_PROMTOOL = """
apt-get download -q prometheus || { apt-get update -q; apt-get download -q prometheus; }
dpkg --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
rm prometheus_*.deb
"""
