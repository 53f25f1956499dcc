"""Stages that are not what the coordinator takes them for: a second one with a name in use, and one with a
folder of checkpoints of its own."""
import pathlib
import re

import fleet
import harness


class Fleet(fleet.FleetTest):
    def holder(self, name):
        stages = fleet.fetch(self.http, "/api/v1/stages")[1]["stages"]
        return next((info["stage"]["address"] for info in stages if info["stage"]["name"] == name), None)

    def test_a_second_process_with_a_name_in_use_waits_and_the_job_goes_on(self):
        self.launch_stage("stage-0")
        first, _ = self.launch_stage("stage-1")
        self.submit(training={"steps": 100000}, checkpoint={"every_steps": 0})
        harness.wait_until("the job runs", lambda: int(self.job()["step"]) > 2, 60)
        second, second_http = self.launch_stage("stage-1", "second")
        refused = re.compile(r"not registered: the name stage-1 is held .*")
        harness.wait_until("the second one is refused", lambda: refused.search(self.log("second")))
        seen = int(self.job()["step"])
        harness.wait_until("the job goes on", lambda: int(self.job()["step"]) > seen + 3, 60)
        told = refused.findall(self.log("second"))
        self.assertEqual(len(told), 1, "once")
        self.assertIn(first, told[0])
        self.assertIn(second, told[0])
        self.assertIn("--name", told[0])
        self.assertEqual(fleet.fetch(second_http, "/readyz")[0], 503)
        self.assertEqual(self.holder("stage-1"), first)
        self.assertEqual((self.job()["state"], int(self.job()["recoveries"])), ("JOB_STATE_RUNNING", 0))

        self.processes["stage-1"].kill()
        harness.wait_until("the second one has the name", lambda: self.holder("stage-1") == second)
        harness.wait_until("the job runs on it", lambda: self.job()["detail"] == "running", 60)
        # The coordinator shows a stage before the stage has its answer.
        harness.wait_until("it is ready", lambda: fleet.fetch(second_http, "/readyz")[0] == 200)

    def test_a_job_reads_what_is_beneath_a_data_root_and_nothing_else(self):
        """Symptom: a model learned a file that only the servers may read by heart, and errors told which files there are."""
        text = self.folder / "input.txt"
        data = self.folder / "data"
        data.mkdir()
        (data / "input.txt").write_text(text.read_text())
        (data / "link.txt").symlink_to(text)
        for name in ("stage-0", "stage-1"):
            self.launch_stage(name, arguments=("--data-root", data))
        answers = {}
        for name, path in (("shadow", pathlib.Path("/etc/shadow")), ("journal", self.folder / "state" / "journal.sqlite"),
                           ("text", text), ("nothing", self.folder / "nothing.txt"), ("link", data / "link.txt")):
            place = {"on_stages": str(path.parent), "text": {"path": path.name, "bytes": True}}
            self.submit(name, name=name, data=place, evaluation=None,
                        model={"gpt": {"vocabulary": 256}})
            job = self.ended(name)
            self.assertEqual((job["state"], int(job["recoveries"]), int(job["step"])), ("JOB_STATE_FAILED", 0, 0), job)
            self.assertIn(f'data.text.path = "{path}": ', job["message"])
            answers[name] = job["message"].split(f'"{path}": ')[1].split(" [at ")[0]
        self.assertIn("--data-root", answers["shadow"])
        for name in ("journal", "text", "nothing"):
            self.assertEqual(answers[name], answers["shadow"], "the same whatever is there")
        self.assertIn("--data-follow-links", answers["link"])

        place = {"on_stages": str(data), "text": {"path": "input.txt"}}
        self.submit("weights", name="weights", data=place, initialize={"on_stages": "/etc", "from": "shadow"})
        message = self.ended("weights")["message"]
        self.assertIn('initialize.from = "/etc/shadow": ', message)
        self.assertIn("--data-root", message)
        self.submit("good", name="good", data=place)
        self.assertEqual(self.ended("good")["state"], "JOB_STATE_SUCCEEDED")


class SharedFolder(fleet.FleetTest):
    coordinator_arguments = ("--store", "folder")

    def test_a_stage_with_a_folder_of_its_own_fails_the_job_before_its_first_step(self):
        other_disk = self.own_disk(self.checkpoints)  # as on a machine that lacks the shared mount
        self.launch_stage("stage-0")
        self.launch_stage("stage-1", before=other_disk)
        self.submit(checkpoint={"every_steps": 0})
        harness.wait_until("the job failed", lambda: self.job()["state"] == "JOB_STATE_FAILED", 60)
        job = self.job()
        self.assertEqual((int(job["step"]), int(job["recoveries"])), (0, 0))
        for part in ("stage 1 (stage-1): ", f"{self.checkpoints}/job/.tmp-", "mount one shared folder"):
            self.assertIn(part, job["message"])
        harness.wait_until("nothing is left", lambda: not list(self.checkpoints.glob("*/.*")))


if __name__ == "__main__":
    harness.main()
