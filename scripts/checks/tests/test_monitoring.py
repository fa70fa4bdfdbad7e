import copy
import json
import re
import unittest

from checks import monitoring, validators
from checks.monitoring import Metric
from common.config import REPO

KNOWN = {
    "waits": Metric("gauge", frozenset({"tool", "tier"})),
    "done_total": Metric("counter", frozenset({"tool"})),
    "took_seconds": Metric("histogram", frozenset({"stage"})),
    "up": Metric("gauge", frozenset()),
}


def findings(expression):
    return monitoring.wrong_expression("here", expression, KNOWN)


class ListTest(unittest.TestCase):
    KNOWN = {"retouch_waits": Metric("gauge", frozenset({"tool", "tier"})), "retouch_done_total": Metric("counter", frozenset())}
    RIGHT = "| `retouch_waits` | gauge | `tool`, `tier` | jobs |\n| `retouch_done_total` | counter | | jobs |\n"

    def test_a_complete_list_is_accepted(self):
        self.assertEqual(monitoring.wrong_list(self.RIGHT, self.KNOWN), [])

    def test_what_is_missing_gone_or_wrong_is_found(self):
        for old, new, finding in (
            ("`retouch_done_total`", "`retouch_made_total`", "docs/metrics.md lacks retouch_done_total"),
            ("`retouch_done_total`", "`retouch_made_total`", "docs/metrics.md lists retouch_made_total, which nothing reports"),
            ("gauge", "counter", "docs/metrics.md: retouch_waits is a gauge with the labels ['tier', 'tool']"),
            (", `tier`", "", "docs/metrics.md: retouch_waits is a gauge with the labels ['tier', 'tool']"),
        ):
            self.assertIn(finding, monitoring.wrong_list(self.RIGHT.replace(old, new), self.KNOWN))


class ExpressionTest(unittest.TestCase):
    def test_known_metrics_are_accepted(self):
        for right in (
            "max by (tool) (waits{tier='paid'}) > 60".replace("'", '"'),
            "sum(rate(done_total[5m])) or vector(0)",
            "histogram_quantile(0.95, sum by (le, stage) (rate(took_seconds_bucket[5m])))",
            'absent(up{job="x"} == 1) and on (instance) waits',
            "sum(increase(done_total[$__rate_interval])) - sum(done_total offset 1h)",
            "time() - max(waits) > 26 * 3600",
        ):
            self.assertEqual(findings(right), [], right)

    def test_unknown_metrics_and_labels_are_found(self):
        for wrong, message in {
            "max(wait)": "here: unknown metric wait",
            "rate(took_seconds[5m])": "here: unknown metric took_seconds",
            "rate(done_total_sum[5m])": "here: unknown metric done_total_sum",
            'waits{tiers="paid"}': "here: waits has no label tiers",
            "sum by (tier) (done_total)": "here: no metric in it has a label tier",
            "rate(waits[5m])": "here: waits is a gauge, which has no rate",
        }.items():
            self.assertEqual(findings(wrong), [message], wrong)


class SourceTest(unittest.TestCase):
    def test_metrics_are_read_from_rust(self):
        source = """
            metrics::counter!("a_total", "tool" => job.tool.name().as_str(),
                "code" => format!("{}", x(1))).increment(1);
            gauge!("b").set(f(2));
        """
        found = dict(monitoring.metrics_in(source))
        self.assertEqual(found["a_total"], Metric("counter", frozenset({"tool", "code"})))
        self.assertEqual(found["b"], Metric("gauge", frozenset()))

    def test_metrics_of_the_code_are_found_with_all_labels(self):
        ours = monitoring.ours()
        self.assertEqual(ours["retouch_jobs_done_total"].labels, {"tool", "tier"})
        self.assertEqual(ours["retouch_http_request_seconds"].kind, "histogram")
        self.assertIn("retouch_backup_finished_seconds", ours)


class BoardTest(unittest.TestCase):
    def setUp(self):
        self.board = json.loads((monitoring.MONITORING / "board.json").read_text())
        self.known = monitoring.reported()

    def wrong(self, change):
        board = copy.deepcopy(self.board)
        change(board, next(panel for panel in board["panels"] if panel["type"] != "row"))
        return monitoring.wrong_board("board", board, self.known)

    def test_an_invalid_dashboard_is_found(self):
        self.assertEqual(self.wrong(lambda board, panel: None), [])
        for change, message in (
            (lambda board, panel: board.pop("panels"), "panels is missing"),
            (lambda board, panel: board["templating"]["list"].clear(), "no variable for the data source"),
            (lambda board, panel: panel.update(id=1), "2 panels have the id 1"),
            (lambda board, panel: panel.update(datasource={"uid": "abc"}), "is not the variable"),
            (lambda board, panel: panel.update(targets=[]), "targets are missing"),
            (lambda board, panel: panel["gridPos"].update(x=2), "it overlaps with"),
            (lambda board, panel: panel["gridPos"].update(x=22), "outside of the dashboard"),
            (lambda board, panel: panel["targets"][0].update(expr="max(gone)"), "unknown metric gone"),
        ):
            self.assertIn(message, " ".join(self.wrong(change)))


class AlertTest(unittest.TestCase):
    def setUp(self):
        yaml = validators.yaml()
        self.alerts = yaml.safe_load((monitoring.MONITORING / "alerts.yml").read_text())
        self.tested = yaml.safe_load((monitoring.MONITORING / "alerts_test.yml").read_text())
        self.known = monitoring.reported()

    def test_an_alert_without_test_summary_severity_or_page_is_found(self):
        rule = self.alerts["groups"][0]["rules"][0]
        rule["alert"], rule["labels"], rule["annotations"] = "New", {}, {}
        found = " ".join(monitoring.wrong_alerts(self.alerts, self.tested, self.known) + monitoring.wrong_runbooks(self.alerts))
        for message in ("no test in alerts_test.yml", "no summary", "must be page or ticket", "is not in docs/runbooks", "no alert links to it"):
            self.assertIn(message, found)

    def test_a_page_with_another_severity_than_its_alert_is_found(self):
        self.alerts["groups"][0]["rules"][0]["labels"]["severity"] = "ticket"
        self.assertEqual(
            monitoring.wrong_runbooks(self.alerts),
            [
                "paid-jobs-wait.md: the line below its title does not start with Ticket",
                "docs/runbooks/README.md does not list paid-jobs-wait.md as a ticket",
            ],
        )

    def test_a_mute_of_an_alert_that_does_not_exist_is_found(self):
        rule = {"source_matchers": ["alertname = RetouchGone"], "target_matchers": ['alertname =~ "RetouchApiBusy|RetouchAlsoGone"']}
        self.assertEqual(
            monitoring.wrong_routes({"inhibit_rules": [rule]}, self.alerts),
            ["alertmanager.yml: there is no alert RetouchGone", "alertmanager.yml: there is no alert RetouchAlsoGone"],
        )

    def test_the_thresholds_of_quantiles_are_limits_of_buckets(self):
        """A quantile within a bucket is a guess, so a threshold there is crossed too early or too late."""
        [limits] = re.findall(r"set_buckets\(&\[(.*?)\]\)", (REPO / "core/src/telemetry.rs").read_text(), re.S)
        buckets = {float(limit) for limit in limits.split(",") if limit.strip()}
        rules = [rule["expr"] for rule in monitoring.rules_of(self.alerts) if rule["expr"].startswith("histogram_quantile")]
        self.assertTrue(rules)
        for rule in rules:
            self.assertIn(float(rule.rpartition(">")[2]), buckets, rule)
