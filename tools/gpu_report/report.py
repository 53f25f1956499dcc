"""The report on disk: written anew after every row, so that a machine that goes away takes no finished row with it."""
import contextlib
import copy
import os
import signal
import sys

from . import table


class Stopped(BaseException):
    """SIGTERM or Ctrl-C. No Exception: a row must not take it for its own failure."""


class _Stops:
    held, pending = False, None


@contextlib.contextmanager
def stops_held():
    """A signal within raises Stopped at the end: what is begun here is known to somebody who can end it."""
    _Stops.held = True
    try:
        yield
    finally:
        _Stops.held = False
    if _Stops.pending is not None:
        raise _Stops.pending


def stop_on_signals():
    """The first SIGTERM or SIGINT raises Stopped in the main thread, later ones do nothing: the report is being written."""
    def stop(number, _):
        for known in (signal.SIGTERM, signal.SIGINT):
            signal.signal(known, signal.SIG_IGN)
        _Stops.pending = Stopped(f"stopped by {signal.Signals(number).name}")
        if not _Stops.held:
            raise _Stops.pending
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


class Report:
    """NAME.json and NAME.md. `facts` and `sections` are looked at by each write; `earlier` is an earlier report's value,
    whose rows stand where none is run now."""

    def __init__(self, path, facts, notes=(), earlier=None):
        self.path = path.with_suffix("") if path.suffix in (".json", ".md") else path
        self.facts, self.sections, self.notes, self.earlier = facts, [], notes, earlier

    @property
    def json(self):
        return self.path.with_suffix(".json")

    @property
    def markdown(self):
        return self.path.with_suffix(".md")

    @property
    def shards(self):
        """A folder for what each process of the conformance section found."""
        return self.path.with_name(self.path.name + "-shards")

    def merged(self):
        """Copies of the sections with the earlier report's rows."""
        sections = [copy.copy(section) for section in self.sections]
        if self.earlier is None:
            return sections
        try:
            return table.completed(sections, self.facts, self.earlier)
        except (TypeError, ValueError, KeyError) as error:
            print(f"gpu_check: the earlier report: {error}; left aside", file=sys.stderr)
            self.earlier = None
            return self.merged()

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        sections = self.merged()
        for file, text in ((self.json, table.to_json(self.facts, sections)),
                           (self.markdown, table.markdown(self.facts, sections, self.notes))):
            draft = file.with_suffix(file.suffix + ".draft")
            draft.write_text(text)
            os.replace(draft, file)
        return sections
