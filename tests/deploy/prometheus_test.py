"""Debian's Prometheus scrapes a live cluster: every expression of every rule and panel returns data while a job runs."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402
import server_process  # noqa: E402
import waiting  # noqa: E402

import expressions  # noqa: E402

# Text of an expression -> why it may be empty here. Everything else must return data.
MAY_BE_EMPTY = {
    "DCGM_FI_": "no GPU, no exporter",
    "stagecoach_stage_device_": "no GPU",
    "stagecoach_stage_memory_limit_bytes": "drawn only where a limit is set",
    "stagecoach_certificate_expiry": "this cluster has no TLS",
    "stagecoach_rpc_refused": "this cluster has no TLS",
}


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class Live(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.start(self.job_file(
            model={"objective": {"cross_entropy": {}}},  # which measures accuracy
            name="watched", training={"steps": 1000000}, checkpoint={"every_steps": 100, "keep": 2},
            evaluation={"every_steps": 100, "batches": 2}), 2, "state", "--id", "watched")
        self.cluster.wait_for_step(3)
        self.start_prometheus()

    def write_targets(self):
        """A restarted stage has another port, so its target is read anew."""
        processes = self.cluster.processes()
        stages = [entry["http"] for name, entry in processes.items() if name.startswith("stage-")]
        partial = self.folder / "stages.tmp"
        partial.write_text(json.dumps([{"targets": stages}]))
        partial.rename(self.folder / "stages.json")
        return processes["coordinator"]["http"]

    def start_prometheus(self):
        shutil.copy(expressions.RULES, self.folder)
        coordinator = self.write_targets()
        (self.folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["stagecoach.rules.yml"],
            "scrape_configs": [
                {"job_name": "stagecoach-coordinator", "static_configs": [{"targets": [coordinator]}]},
                {"job_name": "stagecoach-stage",
                 "file_sd_configs": [{"files": ["stages.json"], "refresh_interval": "1s"}]}]}))
        self.port = server_process.free_port()
        log = open(self.folder / "prometheus.log", "w")
        program = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

        def stop():
            program.terminate()
            program.wait(timeout=30)
            log.close()
        self.addCleanup(stop)
        harness.wait_until("prometheus to be ready", self.ready, 30)

    def ready(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=60).status == 200
        except OSError:
            return False

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(url, timeout=60) as reply:
            return json.load(reply)["data"]

    def has_data(self, expression):
        result = self.ask("query", query=expression)["result"]
        return any(sample["value"][1] != "NaN" for sample in result)

    def shipped(self):
        """(where, expression); an alert's condition as 0 or 1, for it must be computable, not true."""
        for group in self.ask("rules")["groups"]:
            for rule in group["rules"]:
                query = rule["query"]
                if rule["type"] == "alerting":
                    query = re.sub(r" (==|>|<) ", r" \1 bool ", query)
                yield rule["name"], query
        for path, title, expression in expressions.dashboard_expressions():
            yield f"{path}: {title}", expressions.filled(expression)

    def test_every_expression_returns_data_while_a_job_runs(self):
        def up():
            return len(self.ask("query", query="up == 1")["result"]) == 3
        harness.wait_until("three targets", up, 30)
        # Before the recovery, or it would be no change.
        harness.wait_until("a scrape with the job", lambda: self.has_data("stagecoach_job_recoveries_total"), 30)
        # One recovery, for the series and marks that tell of it.
        self.cluster.signal("stage-1", signal.SIGKILL)
        self.cluster.wait_for("recovery", lambda e: e["event"] == "recovery")
        self.cluster.wait_for("a step after it", lambda e: e["event"] == "step")
        self.write_targets()
        harness.wait_until("three targets again", up, 30)
        self.assertGreaterEqual(len(self.ask("rules")["groups"]), 2)
        open_ones = dict(enumerate(self.shipped()))
        count = len(open_ones)
        self.assertGreater(count, 50)

        def all_have_data():
            for key, (_, expression) in list(open_ones.items()):
                if self.has_data(expression):
                    del open_ones[key]
            return all(any(text in e for text in MAY_BE_EMPTY) for _, e in open_ones.values())
        try:  # a scrape a second
            waiting.wait_until("data", all_have_data, 60 * harness.TIME_FACTOR, every=1)
        except AssertionError:
            self.fail(f"no data for these: {[f'{where}: {expression}' for where, expression in open_ones.values()]}")
        excused = {where for where, _ in open_ones.values()}
        print(f"{count - len(open_ones)} of {count} expressions return data; empty by intent: {sorted(excused)}")
        firing = self.ask("query", query='ALERTS{alertstate="firing",alertname!="StagecoachTargetDown"}')["result"]
        self.assertEqual(firing, [], "a healthy job raises no alert")
        # The rules are evaluated without an error; one that was not evaluated yet is of unknown health.
        def unhealthy():
            return [r["name"] for g in self.ask("rules")["groups"] for r in g["rules"] if r["health"] != "ok"]
        harness.wait_until("every rule evaluated well", lambda: not unhealthy(), 30)

    def test_a_lost_stage_is_reported(self):
        stopped = self.cluster.pid("stage-1")
        os.kill(stopped, signal.SIGSTOP)
        try:
            harness.wait_until("the alert", lambda: any(
                a["labels"]["alertname"] == "StagecoachStageLost" and a["labels"].get("stage") == "stage-1" and
                a["state"] == "firing" for a in self.ask("alerts")["alerts"]), 60)
        finally:
            os.kill(stopped, signal.SIGCONT)
        harness.wait_until("the alert to go", lambda: not any(
            a["labels"]["alertname"] == "StagecoachStageLost" for a in self.ask("alerts")["alerts"]), 60)


if __name__ == "__main__":
    harness.main()
