"""The line that shows how far a job is, in a terminal or a notebook."""
from __future__ import annotations

import shutil
import sys
import time
from typing import Any, List, Optional, TextIO

from .results import Event

__all__ = ["Progress"]

_BAR_COLUMNS = 24
_LEAST_SECONDS = 0.1  # between two drawings
_NEWEST = 0.1  # weight of the newest step in the mean that the remaining time is made of


class Progress:
    """Draws events as they come; `close` leaves the last line. Draws nothing where nobody looks.

    `show` None: if standard error is a terminal, or in a notebook.

    >>> progress = stagecoach.Progress(total_steps=6, show=False)
    >>> for event in job.follow(progress=False):
    ...     progress.draw(event)
    >>> progress.text()
    '[========================] 6/6  SUCCEEDED'
    """

    def __init__(self, total_steps: int, show: Optional[bool] = None, stream: Optional[TextIO] = None) -> None:
        self._total = total_steps
        self._step = 0
        self._note = ""
        self._seconds = 0.0  # of a step, a moving mean
        self._drawn = 0.0
        self._stream = stream or sys.stderr
        self._handle: Any = None
        self._show = _display() if show is not False else None
        self._is_line = self._show is None and (self._stream.isatty() if show is None else show)

    def draw(self, event: Event) -> None:
        """Takes the event into the line, and draws it anew, ten times a second at most."""
        self._step = event.step
        if event.kind == "step":
            seconds = event["step_seconds"]
            self._seconds = seconds if not self._seconds else (1 - _NEWEST) * self._seconds + _NEWEST * seconds
            self._note = f"loss {event['loss']:.4f}"
            left = self._seconds * (self._total - self._step)
            if self._total > self._step:
                self._note += f"  {_duration(left)} left"
        elif event.kind in ("state", "loading"):
            self._note = ": ".join(part for part in (event["detail"] or event["state"], event["message"]) if part)
        elif event.kind == "recovery":
            self._note = f"recovery: {event['message']}"
        elif event.kind == "finished":
            self._note = ": ".join(part for part in (event["state"], event["message"]) if part)
        if event.kind != "step" or time.monotonic() - self._drawn >= _LEAST_SECONDS:
            self._write()

    def note(self, text: str) -> None:
        """Shows a text in the place of the loss, until the next event."""
        self._note = text
        self._write()

    def text(self) -> str:
        """The line as it is now."""
        parts: List[str] = []
        if self._total > 0:
            share = min(1.0, self._step / self._total)
            done = int(share * _BAR_COLUMNS)
            bar = ("=" * done + (">" if done < _BAR_COLUMNS else "")).ljust(_BAR_COLUMNS)
            parts.append(f"[{bar}] {self._step}/{self._total}")
        else:
            parts.append(f"step {self._step}")
        return "  ".join([*parts, self._note] if self._note else parts)

    def close(self) -> None:
        """Ends the line."""
        if self._is_line and self._drawn:
            self._write()
            self._stream.write("\n")
            self._stream.flush()

    def _write(self) -> None:
        self._drawn = time.monotonic()
        data = {"text/plain": self.text()}
        if self._show is not None and self._handle is None:
            self._handle = self._show(data, raw=True, display_id=True)
        elif self._handle is not None:
            self._handle.update(data, raw=True)
        elif self._is_line:
            columns = shutil.get_terminal_size().columns - 1
            self._stream.write("\r" + " ".join(self.text().split("\n"))[:columns].ljust(columns))
            self._stream.flush()


def _display() -> Any:
    """IPython's display function in a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or shell is None or getattr(shell, "kernel", None) is None:
        return None
    return ipython.display.display


def _duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
