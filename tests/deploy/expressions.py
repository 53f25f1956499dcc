"""Every PromQL expression that the project ships, with where it stands: rules and dashboard panels."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "deploy" / "prometheus" / "stagecoach.rules.yml"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
KEYWORDS = {"sum", "rate", "by", "increase", "histogram_quantile", "scalar", "vector", "or", "time", "count", "changes", "le",
            "and", "predict_linear"}


def panels(dashboard):
    """Panels in order, those of collapsed rows too."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def dashboard_expressions():
    """(dashboard, panel title, expression as written)"""
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        for panel in panels(dashboard):
            for target in panel.get("targets", []):
                yield path.name, panel["title"], target["expr"]
        for annotation in dashboard["annotations"]["list"]:
            yield path.name, "annotation " + annotation["name"], annotation["expr"]


def filled(expression):
    """As Grafana asks with `All` chosen everywhere."""
    expression = expression.replace("$__rate_interval", "20s")
    return re.sub(r"\$\{?(namespace|job_id|stage)\}?", ".*", expression)


def metric_names(expression):
    """Names of series that it reads."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\{[^}]*\}", "{}", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left)\s*\([^)]*\)", "", bare)
    return {name for name in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", bare) if name not in KEYWORDS}


def documented_names():
    """docs/metrics.md, with what a histogram becomes on the wire."""
    names = set()
    for line in (ROOT / "docs" / "metrics.md").read_text().splitlines():
        found = re.match(r"\| `(\w+)` \| (\w+) \|", line)
        if found:
            name, kind = found.groups()
            names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names
