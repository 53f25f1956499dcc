"""What jobs may read, and what their errors tell."""
import re

from cluster import Cluster, HELD
from rows import row, verdict
import waiting


def without_numbers(text):
    return re.sub(r"reads-\d+|term \d+|attempt \d+|stage \d+|stage-\d+", "N", text)


@row("data-paths", "`data.text.path`: /etc/shadow, a file that is not there, `..` out of the root, a link out of it, the "
     "coordinator's journal",
     "read, and trained on; errors told which files are there, and bytes of them")
def data_paths(programs, _):
    with Cluster(programs) as cluster:
        (cluster.data / "link.txt").symlink_to("/etc/passwd")
        paths = {"/etc/shadow": "/etc/shadow", "not there": "/etc/no-such-file", "..": str(cluster.data / ".." / "stage-0.log"),
                 "a link": str(cluster.data / "link.txt"), "the journal": str(cluster.folder / "state" / "journal.sqlite")}
        said, trained = {}, []
        for number, (name, path) in enumerate(paths.items()):
            job_id = f"reads-{number}"

            def change(spec):
                spec["data"]["text"]["path"] = path
            submitted = cluster.submit(job_id=job_id, change=change)
            if submitted.returncode != 0:
                said[name] = submitted.stderr.strip()
                continue
            waiting.wait_until(f"{job_id} ends", lambda: cluster.job(job_id).get("state") in (
                "JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED") or int(cluster.job(job_id).get("step", 0)) > 0, 30)
            job = cluster.job(job_id)
            said[name] = job.get("message", "")
            if int(job.get("step", 0)) > 0:
                trained.append(name)
        beyond = {without_numbers(said[name].replace(paths[name], "PATH").replace("STATE/journal.sqlite", "PATH"))
                  for name in ("/etc/shadow", "not there", "the journal")}
        errors = "one error, whether a file is there or not" if len(beyond) == 1 else f"{len(beyond)} errors"
        example = " / ".join(sorted(beyond))[:700]
        return verdict(not trained and len(beyond) == 1,
                       f"no job reads one; beyond the roots {errors}: \"{example}\"")


@row("text", "escape sequences, line ends and bytes that are no UTF-8 in a job file, a job's name and a path",
     "forged lines in logs, raw escapes on terminals; `list` broken for ever by one byte")
def text(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        printed = []
        for body in ('name: "a\\e[31mred"\n', "name: \x1b[31mred\n: :\n", "na\xffme: {\n"):
            result = cluster.cli("user", "submit", "--detach", "-", input=body)
            printed.append(result.stderr + result.stdout)
            assert result.returncode != 0, body

        def path(spec):
            spec["data"]["text"]["path"] = "/x\n[critical] forged \x1b[2J\u202e"
            spec["pipeline"]["stages"] = 2
        cluster.submit(job_id="forged", change=path)
        cluster.cli("user", "cancel", "forged")
        listed = cluster.cli("user", "list")
        described = cluster.cli("user", "describe", "forged")
        log = cluster.coordinator.log() + "".join(stage.log() for stage in cluster.stages)
        raw = [name for name, value in (("errors", "".join(printed)), ("list", listed.stdout), ("logs", log),
                                        ("describe", described.stdout)) if "\x1b" in value or "\u202e" in value]
        forged = [line for line in log.splitlines() if line.startswith("[critical] forged")]
        fine, more = cluster.untouched()
        left = "describe prints the path of the spec as it is" if raw == ["describe"] else f"raw in {', '.join(raw)}" if raw else "none raw"
        good = not raw and not forged and listed.returncode == 0
        return verdict(good and fine, f"errors, list and logs: {left}, {len(forged)} forged lines; list works; {more}")


@row("addresses", "a user asks for errors: a job that is not there, an export beyond the folder, a stage that is lost",
     "addresses of stages and folders of the coordinator in them")
def addresses(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        said = [cluster.cli("user", *command).stderr for command in (
            ("describe", "not-there"), ("export", HELD, "/etc/evil"), ("resume", "not-there"),
            ("checkpoints", "list", "not-there"))]
        cluster.stages[1].kill()
        waiting.wait_until("the job recovers", lambda: int(cluster.job().get("recoveries", 0)) > 0, 30)
        said += [cluster.job().get("message", ""), *cluster.recovery_reasons()]
        cluster.stages[1].start()
        cluster.steps_more(3)
        found = [text[:100] for text in said if re.search(r"127\.0\.0\.1:\d+", text.replace(cluster.coordinator.address, "")) or
                 str(cluster.folder / "state") in text]
        said = [text for text in said if text]
        return verdict(not found and len(said) >= 5, f"none of {len(said)} has one" if not found else f"found in: {found}")
