"""The report: rows with outcomes, sections, and both as JSON and Markdown."""
import json
import time
import traceback

from .budget import Failed, Late, NotRun

PASSED, FAILED, NOT_RUN = "passed", "FAILED", "not run"
MOST_WHY = 600  # characters
LATE_SECONDS = 3  # a wait that ends with so little left was cut short by the section's time


class Section:
    """Rows of one kind. `columns`: (key, title, how a number is written). `stamp(began)` gives what every row says of
    the conditions it ran under; `done()` is called after each row."""

    def __init__(self, name, columns=(), budget=None, say=print, stamp=None, done=None):
        self.name, self.columns, self.budget, self.say = name, list(columns), budget, say
        self.stamp, self.done = stamp, done
        self.rows = []

    def row(self, name, work):
        """Runs work(values), which fills in what it measures; keeps what it got so far whatever happens."""
        values = {}
        began = time.monotonic()
        try:
            work(values)
            outcome, why = PASSED, ""
        except NotRun as reason:
            outcome, why = NOT_RUN, str(reason)
        except Late as reason:
            over = self.budget is not None and self.budget.left() < LATE_SECONDS
            outcome, why = (NOT_RUN, f"time: {reason}") if over else (FAILED, str(reason))
        except Failed as reason:
            outcome, why = FAILED, str(reason)
        except Exception as error:  # one row's surprise must not cost the others
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome, why = FAILED, f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        except BaseException as stopped:  # a signal: what was measured so far stays, and the whole ends
            self._add(name, NOT_RUN, str(stopped) or type(stopped).__name__, began, values)
            raise
        return self._add(name, outcome, why, began, values)

    def _add(self, name, outcome, why, began, values):
        entry = {"row": name, "outcome": outcome, "why": shortened(why), "seconds": round(time.monotonic() - began, 1),
                 **values}
        self.rows.append(entry)
        if self.stamp is not None:
            entry["conditions"] = self.stamp(began)
        if self.done is not None:
            self.done()
        self.say(f"{self.name}: {name}: {outcome}{': ' + entry['why'] if why else ''}")
        return entry

    def skip(self, name, why):
        def raise_it(_):
            raise NotRun(why)
        return self.row(name, raise_it)

    def outcome(self):
        return combined([row["outcome"] for row in self.rows])

    def why(self):
        found = [row for row in self.rows if row["outcome"] == FAILED]
        found = found or [row for row in self.rows if row["outcome"] == NOT_RUN]
        reasons = list(dict.fromkeys(row["why"] for row in found))
        if not reasons:
            return ""
        counted = f"{len(found)} of {len(self.rows)} rows: " if len(self.rows) > 1 else ""
        return shortened(counted + "; ".join(reasons))

    def to_json(self):
        return {"section": self.name, "outcome": self.outcome(), "why": self.why(), "columns": self.columns,
                "rows": self.rows}


def completed(sections, machine, earlier):
    """Takes rows that could not run now from an earlier report (its JSON as a value) of the same programs on the same
    kind of device. ValueError if it is of others."""
    for key in ("device_name", "commit"):
        if earlier["machine"].get(key) != machine.get(key):
            raise ValueError(f"{key} is {earlier['machine'].get(key)!r} there, {machine.get(key)!r} here")
    known = {(section["section"], row["row"]): row for section in earlier["sections"] for row in section["rows"]}
    columns = {section["section"]: section.get("columns", []) for section in earlier["sections"]}
    here = {section.name: section for section in sections}
    for name in columns:
        if name not in here:
            sections.append(Section(name, columns[name]))
            sections[-1].rows = [row for (of, _), row in known.items() if of == name]
            continue
        section = here[name]
        section.columns = section.columns or columns[name]
        section.rows = [known.get((name, row["row"]), row) if row["outcome"] == NOT_RUN else row for row in section.rows]
        names = {row["row"] for row in section.rows}
        if names == {"all"}:  # skipped as a whole
            section.rows, names = [], set()
        section.rows += [row for (of, row_name), row in known.items() if of == name and row_name not in names]
    return sections


def combined(outcomes):
    """FAILED if one is; passed if one ran and none failed; otherwise not run."""
    if FAILED in outcomes:
        return FAILED
    return PASSED if PASSED in outcomes else NOT_RUN


def shortened(text):
    text = " ".join(str(text).split())
    return text if len(text) <= MOST_WHY else text[:MOST_WHY // 2] + " ... " + text[-MOST_WHY // 2:]


def exit_code(sections):
    """0: all rows passed. 1: one failed. 3: something could not run."""
    outcomes = [row["outcome"] for section in sections for row in section.rows]
    if FAILED in outcomes:
        return 1
    return 0 if outcomes and all(outcome == PASSED for outcome in outcomes) else 3


def written(value, style):
    """A cell. style: a format as of format(), "%" for a share, "GB" for bytes, "met" for a goal, "" for text."""
    if value is None or value == "":
        return "–"
    if style == "%":
        return f"{100 * value:.1f} %"
    if style == "GB":
        return f"{value / 1e9:.3g}"
    if style == "met":
        return "met" if value else "missed"
    return format(value, style) if style and not isinstance(value, str) else str(value)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(titles, lines):
    text = ["| " + " | ".join(titles) + " |", "| " + " | ".join("---" for _ in titles) + " |"]
    text += ["| " + " | ".join(cell(part) for part in line) + " |" for line in lines]
    return "\n".join(text) + "\n"


def section_table(section):
    lines = []
    for row in section.rows:
        outcome = row["outcome"] + (f": {row['why']}" if row["why"] else "")
        lines.append([row["row"], *(written(row.get(key), style) for key, _, style in section.columns), outcome])
    return table([section.name, *(title for _, title, _ in section.columns), "outcome"], lines)


def markdown(machine, sections, notes=()):
    """To be pasted into docs/benchmarks.md."""
    text = [f"## A report of gpu_check: {machine['device_name']}\n",
            "\n".join(f"* {key}: {value}" for key, value in machine.items() if key != "device_name") + "\n",
            table(["section", "outcome", "why"], [[s.name, s.outcome(), s.why()] for s in sections])]
    text += [section_table(section) for section in sections if section.rows]
    text += [f"* {note}" for note in notes]
    return "\n".join(text).rstrip("\n") + "\n"


def to_json(machine, sections):
    return json.dumps({"machine": machine, "sections": [s.to_json() for s in sections]}, indent=1) + "\n"
