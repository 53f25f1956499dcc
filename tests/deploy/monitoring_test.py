"""Rules, dashboards and the composition as files: well formed, consistent, and a broken threshold is noticed."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import expressions
from expressions import ROOT

PROMETHEUS = ROOT / "deploy" / "prometheus"
# Alert or record -> (text of its rule, the same broken). Each must make `promtool test rules` fail.
BROKEN = {
    "utilization": ("forward|recompute|backward|optimizer", "forward|recompute|backward|bubble"),
    "bubble share": ('phase="bubble"', 'phase="idle"'),
    "tokens": ("rate(stagecoach_train_tokens_total[1m])", "rate(stagecoach_train_tokens_total[1m]) * 60"),
    "TargetDown": ('up{job=~"stagecoach-(coordinator|stage)"} == 0', 'up{job=~"stagecoach-(coordinator|stage)"} == 1'),
    "StageLost": ("last_heartbeat_timestamp_seconds > 15", "last_heartbeat_timestamp_seconds > 1500"),
    "JobStalled counts replays": ('{result!="replayed"}[5m]', "[5m]"),
    "BubbleHigh": ("ideal_bubble_ratio + 0.15", "ideal_bubble_ratio + 0.01"),
    "LossNotFinite": ("[10m]) > 3", "[10m]) > 300"),
    "utilization of all namespaces": ("sum by (namespace, stage)", "sum by (stage)"),
    "jobs of all namespaces": ("sum by (namespace, job_id)", "sum by (job_id)"),
    "JobFailed": ('{state="FAILED"}[15m]) > 0', '{state="FAILED"}[15m]) > 1'),
    "JobFailed counts other ends": ('_total{state="FAILED"}', "_total"),
    "QueueStuck behind a long job": (' and ignoring (state) stagecoach_jobs{state="RUNNING"} == 0', ""),
    "QueueStuck": ("queue_oldest_seconds > 900", "queue_oldest_seconds > 9000"),
    "DiskFilling, full": ("< 0.1 * stagecoach_folder_size_bytes", "< 0.01 * stagecoach_folder_size_bytes"),
    "DiskFilling, soon": ("4 * 3600) < 0", "4 * 60) < 0"),
    "CertificateExpires": ("< 14 * 86400", "< 1 * 86400"),
    "CheckpointStale": ("last_success_timestamp_seconds > 3600", "last_success_timestamp_seconds > 360"),
}


def promtool(*arguments, cwd=PROMETHEUS):
    return subprocess.run(["promtool", *map(str, arguments)], cwd=cwd, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
class Rules(unittest.TestCase):
    def test_files_are_accepted(self):
        for arguments in (("check", "rules", "stagecoach.rules.yml"), ("check", "config", "prometheus.yml"),
                          ("test", "rules", "stagecoach.rules.test.yml")):
            result = promtool(*arguments)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_broken_threshold_fails_the_rule_tests(self):
        for name, (good, bad) in BROKEN.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                text = (PROMETHEUS / "stagecoach.rules.yml").read_text()
                self.assertIn(good, text)
                (pathlib.Path(folder) / "stagecoach.rules.yml").write_text(text.replace(good, bad))
                shutil.copy(PROMETHEUS / "stagecoach.rules.test.yml", folder)
                result = promtool("test", "rules", "stagecoach.rules.test.yml", cwd=folder)
                self.assertNotEqual(result.returncode, 0, f"{name}: nothing noticed\n{result.stdout}")

    def test_every_alert_is_tested_and_has_a_runbook(self):
        text = (PROMETHEUS / "stagecoach.rules.yml").read_text()
        tests = (PROMETHEUS / "stagecoach.rules.test.yml").read_text()
        headings = {"#" + line.lstrip("# ").strip().lower().replace(" ", "-")
                    for line in (ROOT / "docs" / "operations.md").read_text().splitlines() if line.startswith("#")}
        alerts = re.findall(r"- alert: (\w+)\n((?:        .*\n)*)", text)
        self.assertEqual(len(alerts), 10)
        for name, body in alerts:
            self.assertTrue(name.startswith("Stagecoach"))
            self.assertRegex(body, r"severity: (info|warning|critical)")
            self.assertIn(f"alertname: {name}", tests)
            # Alertmanager's templates and Grafana look for this name, and make a link of it.
            runbook = re.search(r"runbook_url: https://\S+/operations.md(#\S+)", body)
            self.assertIsNotNone(runbook, name)
            self.assertIn(runbook.group(1), headings, f"{name}: no such heading in docs/operations.md")


class Dashboards(unittest.TestCase):
    def test_structure(self):
        self.assertTrue(expressions.DASHBOARDS)
        for path in expressions.DASHBOARDS:
            dashboard = json.loads(path.read_text())
            self.assertRegex(dashboard["uid"], r"^stagecoach-[a-z]+$")
            panels = list(expressions.panels(dashboard))
            ids = [panel["id"] for panel in panels]
            self.assertEqual(len(ids), len(set(ids)), "panel ids must be unique")
            self.assertEqual([p["title"].split(" (")[0] for p in panels if p["type"] == "row"],
                             ["Overview", "Stages", "Pipeline", "Training", "Memory", "Links", "Checkpoints",
                              "Coordinator and gRPC", "GPU"])
            for panel in panels:
                where = f"{path.name}: {panel['title']}"
                if panel["type"] == "row":
                    continue
                self.assertEqual(panel["datasource"]["uid"], "${datasource}", where)
                self.assertTrue(panel["targets"], where)
                self.assertTrue(all(t["datasource"]["uid"] == "${datasource}" for t in panel["targets"]), where)
                self.assertIn("unit", panel["fieldConfig"]["defaults"], where)
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24, where)
            variables = {v["name"] for v in dashboard["templating"]["list"]}
            self.assertEqual(variables, {"datasource", "namespace", "job_id", "stage"})

    def test_every_metric_is_documented(self):
        known = expressions.documented_names() | {"ALERTS", "up"}
        known |= set(re.findall(r"record: (\S+)", expressions.RULES.read_text()))
        for path, title, expression in expressions.dashboard_expressions():
            names = {n for n in expressions.metric_names(expression) if not n.startswith("DCGM_")}
            self.assertTrue(names <= known, f"{path}, {title}: {names - known} not in docs/metrics.md")
        for expression in re.findall(r"expr: (?:>-\n((?:          .*\n)+)|(.*))", expressions.RULES.read_text()):
            names = expressions.metric_names("".join(expression))
            self.assertTrue(names and names <= known, names - known)

    def test_every_documented_metric_is_drawn(self):
        """On a panel, or by a recorded rule that one shows."""
        drawn = set()
        for _, _, expression in expressions.dashboard_expressions():
            drawn |= expressions.metric_names(expression)
        rules = re.findall(r"record: (\S+)\n +expr: (?:>-\n((?:          .*\n)+)|(.*))", expressions.RULES.read_text())
        for name, *expression in rules:
            if name in drawn:
                drawn |= expressions.metric_names("".join(expression))
        # A histogram is drawn by its buckets.
        missing = {name for name in expressions.documented_names() - drawn if not name.endswith(("_sum", "_count"))}
        self.assertEqual(missing, set(), "documented, and on no panel")

    def test_no_two_panels_lie_on_each_other(self):
        for path in expressions.DASHBOARDS:
            cells = {}
            for panel in expressions.panels(json.loads(path.read_text())):
                place = panel["gridPos"]
                for x in range(place["x"], place["x"] + place["w"]):
                    for y in range(place["y"], place["y"] + place["h"]):
                        self.assertNotIn((x, y), cells, f"{panel['title']} and {cells.get((x, y))}")
                        cells[x, y] = panel["title"]

    def test_provisioning_names_what_the_composition_mounts(self):
        compose = (ROOT / "docker-compose.yml").read_text()
        provider = (ROOT / "deploy/grafana/provisioning/dashboards/stagecoach.yml").read_text()
        path = re.search(r"path: (\S+)", provider).group(1)
        self.assertIn(f"./deploy/grafana/dashboards:{path}:ro", compose)
        datasource = (ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text()
        self.assertIn("url: http://prometheus:9090", datasource)
        for text in (provider, datasource):
            self.assertTrue(text.startswith("apiVersion: 1\n"))


class Composition(unittest.TestCase):
    def config(self, *files, **variables):
        program = shutil.which("docker-compose")
        if program is None:
            self.skipTest("docker-compose is not installed")
        command = [program]
        for name in files:
            command += ["-f", name]
        return subprocess.run([*command, "config"], cwd=ROOT, text=True, capture_output=True, timeout=60,
                              env=dict(os.environ, **variables))

    def test_files_are_accepted(self):
        for files in (["docker-compose.yml"], ["docker-compose.yml", "deploy/compose.gpu.yml"]):
            result = self.config(*files)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("capabilities:\n            - gpu", result.stdout)

    def test_every_service_is_hardened(self):
        result = self.config("docker-compose.yml", COMPOSE_PROFILES="stages-8")
        self.assertEqual(result.returncode, 0, result.stderr)
        services = result.stdout[result.stdout.index("services:"):]
        blocks = re.findall(r"^  ([\w-]+):\n((?:    .*\n)+)", services, re.MULTILINE)
        self.assertEqual(len(blocks), 12)
        for name, body in blocks:
            for line in ("read_only: true", "cap_drop:", "no-new-privileges:true", "mem_limit:", "cpus:", "pids_limit:",
                         "healthcheck:", "restart:", "max-size: 10m"):
                self.assertIn(line, body, name)
            for port in re.findall(r"- (\S+):\d+/tcp", body):
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name} publishes {port}")

    def test_remedies_of_docker_compose_yml_are_taken(self):
        """Of an image that cannot be pulled, and of "rlimit type 7": both are named in the file and in operations.md."""
        remedies = {"PROMETHEUS_IMAGE": "mirror/prometheus:1", "GRAFANA_IMAGE": "mirror/grafana:1", "STAGECOACH_OPEN_FILES": "1024"}
        result = self.config("docker-compose.yml", COMPOSE_PROFILES="stages-2", **remedies)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("image: mirror/prometheus:1", result.stdout)
        self.assertIn("image: mirror/grafana:1", result.stdout)
        self.assertEqual(set(re.findall(r"nofile:\s+(\S+)", result.stdout)), {"1024"})
        for text in ((ROOT / "docker-compose.yml").read_text(), (ROOT / "docs/operations.md").read_text()):
            for name in remedies:
                self.assertIn(name, text.replace("${" + name, ""))
            self.assertIn("rlimit type 7: operation not permitted", text)

    def test_defaults_are_those_of_env_example(self):
        compose = (ROOT / "docker-compose.yml").read_text() + (ROOT / "deploy/compose.gpu.yml").read_text()
        example = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))
        used = {}
        for name, default in re.findall(r"\$\{(\w+):-([^}]*)\}", (ROOT / "docker-compose.yml").read_text()):
            self.assertEqual(used.setdefault(name, default), default, f"{name} has two defaults")
        self.assertEqual(used, example)
        self.assertNotRegex(compose, r"(?m)^name:|^\s+gpus:", "docker-compose 1.29 rejects it")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
