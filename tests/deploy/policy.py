"""What every rendered set of manifests must keep; each finding is one line naming the object."""

SERVERS = ("stagecoach-coordinator", "stagecoach-stage")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def pods(objects):
    """(name, pod template) of everything that makes pods."""
    for item in objects:
        name = f"{item['kind']}/{item['metadata']['name']}"
        if item["kind"] in ("StatefulSet", "Deployment", "Job"):
            yield name, item["spec"]["template"]
        if item["kind"] == "JobSet":
            for job in item["spec"]["replicatedJobs"]:
                yield f"{name}/{job['name']}", job["template"]["spec"]["template"]


def check_pod(name, template):
    spec = template["spec"]
    security = spec.get("securityContext", {})
    if not security.get("runAsNonRoot") or security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{name}: runAsNonRoot and seccompProfile RuntimeDefault"
    if not security.get("fsGroup"):
        yield f"{name}: fsGroup, or volumes cannot be written to"
    if spec.get("automountServiceAccountToken") is not False or "serviceAccountName" not in spec:
        yield f"{name}: an account of its own, without a token"
    if "priorityClassName" not in spec or "terminationGracePeriodSeconds" not in spec:
        yield f"{name}: priority class and grace period"
    for container in spec["containers"]:
        yield from check_container(f"{name}/{container['name']}", container)


def check_container(name, container):
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False or not security.get("readOnlyRootFilesystem"):
        yield f"{name}: no escalation, read-only root"
    if security.get("capabilities", {}).get("drop") != ["ALL"]:
        yield f"{name}: drop ALL capabilities"
    for kind in ("requests", "limits"):
        missing = {"cpu", "memory", "ephemeral-storage"} - set(container.get("resources", {}).get(kind, {}))
        if missing:
            yield f"{name}: {kind} of {sorted(missing)}"
    tag = container["image"].rpartition(":")[2]
    if "/" in tag or tag == "latest" or ":" not in container["image"]:
        yield f"{name}: image {container['image']} is not pinned"
    if container["name"] != "client":
        for probe in PROBES:
            if probe not in container:
                yield f"{name}: {probe}"
        if container.get("livenessProbe", {}).get("httpGet", {}).get("path") == "/readyz":
            yield f"{name}: liveness must not depend on registration"


def check_exposure(name, container, insecure_allowed):
    args = container["args"]
    if insecure_allowed or args[0] == "sleep":  # which speaks to nobody
        return
    if "--grpc-use-ssl" not in args or "--insecure-i-know" in args:
        yield f"{name}: gRPC without TLS"
    if "--insecure-http-i-know" in args:
        yield f"{name}: a page without a login"
    if args[0] in SERVERS and not any(arg.startswith("--probes=0.0.0.0:") for arg in args):
        yield f"{name}: probes without a port of their own"
    if "--any-certificate-i-know" in args:
        yield f"{name}: certificates without a role"
    for flag in ("--grpc-server-cert", "--grpc-server-key", "--grpc-root-cert"):
        if not any(arg.startswith(flag + "=/etc/stagecoach/tls/") for arg in args):
            yield f"{name}: {flag}"


def check(objects, insecure_allowed=False):
    """All findings; none for what is shipped."""
    findings = []
    for name, template in pods(objects):
        findings += check_pod(name, template)
        spec = template["spec"]
        volumes = {volume["name"] for volume in spec.get("volumes", [])}
        for container in spec["containers"]:
            findings += check_exposure(name, container, insecure_allowed)
            claims = volumes | {"state"}
            for mount in container.get("volumeMounts", []):
                if mount["name"] not in claims:
                    findings.append(f"{name}: no volume {mount['name']}")
            if "cuda" in str(container["args"]) and container["resources"]["requests"] != container["resources"]["limits"]:
                findings.append(f"{name}: with a card requests must equal limits")
    namespaces = [item for item in objects if item["kind"] == "Namespace"]
    if not namespaces or namespaces[0]["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
        findings.append("Namespace: pod security restricted")
    for item in objects:
        for claim in item.get("spec", {}).get("volumeClaimTemplates", []):
            if "app.kubernetes.io/version" in claim["metadata"].get("labels", {}):
                findings.append(f"{item['metadata']['name']}: a claim's template never changes, so no version in it")
    findings += check_jobsets(objects)
    findings += check_network(objects)
    findings += check_stages(objects)
    return findings


def check_jobsets(objects):
    """A volume outlives the JobSet: what is in it must not have the next one's name. /tmp goes with its pod."""
    for name, template in pods(objects):
        for container in template["spec"]["containers"] if name.startswith("JobSet/") else []:
            for arg in container["args"]:
                lasts = arg.startswith(("--id=", "--state-dir=")) and not arg.startswith("--state-dir=/tmp/")
                if lasts and "$(JOBSET_UID)" not in arg:
                    yield f"{name}: {arg} is the same in the next one"


def check_network(objects):
    policies = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "NetworkPolicy"}
    deny = policies.get("default-deny")
    if deny is None or deny["podSelector"] or set(deny["policyTypes"]) != {"Ingress", "Egress"} or "ingress" in deny:
        yield "NetworkPolicy: nothing is denied by default"
    to = [target for rule in policies.get("dns", {}).get("egress", []) for target in rule.get("to", [])]
    if not any("podSelector" in target for target in to) or not any("ipBlock" in target for target in to):
        yield "NetworkPolicy/dns: the DNS of this cluster need not be in kube-system"
    for component, ports in (("coordinator", {8001, 8002}), ("stage", {8101, 8102})):
        opened = {port["port"] for rule in policies.get(component, {}).get("ingress", []) for port in rule["ports"]}
        if opened != ports:
            yield f"NetworkPolicy/{component}: opens {sorted(opened)}"
        if any("from" not in rule for rule in policies.get(component, {}).get("ingress", [])):
            yield f"NetworkPolicy/{component}: open to everyone"


def check_stages(objects):
    by_name = {(item["kind"], item["metadata"]["name"]): item for item in objects}
    stages = by_name.get(("StatefulSet", "stage"))
    if stages is None:
        return
    if stages["spec"].get("podManagementPolicy") != "Parallel":
        yield "StatefulSet/stage: Parallel"
    service = by_name[("Service", "stage")]["spec"]
    if service.get("clusterIP") != "None" or not service.get("publishNotReadyAddresses"):
        yield "Service/stage: headless, with addresses before readiness"
    budget = by_name.get(("PodDisruptionBudget", "stage"))
    if budget is None or budget["spec"].get("maxUnavailable") != 1:
        yield "PodDisruptionBudget/stage: maxUnavailable 1"
    if not stages["spec"]["template"]["spec"].get("topologySpreadConstraints"):
        yield "StatefulSet/stage: topology spread"
    for name in ("stage", "coordinator"):
        labels = by_name[("StatefulSet", name)]["spec"]["template"]["metadata"]["labels"]
        for selector in (by_name[("Service", name)]["spec"]["selector"],
                         by_name[("StatefulSet", name)]["spec"]["selector"]["matchLabels"]):
            if not selector.items() <= labels.items():
                yield f"Service/{name}: selects no pod"
