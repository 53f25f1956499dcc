"""Time of the whole check, shared among its sections, and the ways in which a row does not pass."""
import time


class NotRun(Exception):
    """A row cannot run here; the text says why."""


class Failed(Exception):
    """A row ran and found something wrong."""


class Late(Failed):
    """A wait came to its end: somebody hangs, or the row began with too little time."""


class Budget:
    """Seconds until a deadline. A part ends with the whole at the latest."""

    def __init__(self, seconds, clock=time.monotonic):
        self._clock = clock
        self._deadline = clock() + seconds

    def left(self):
        return self._deadline - self._clock()

    def part(self, seconds):
        return Budget(min(seconds, self.left()), self._clock)

    def need(self, seconds, what=""):
        """NotRun if less than so many seconds are left."""
        left = max(0.0, self.left())
        if left < seconds:
            raise NotRun(f"time: {what + ' ' if what else ''}needs about {seconds:.0f} s, {left:.0f} s are left")

    def most(self, seconds):
        """`seconds`, or what is left of them; never below 1, so that a started program gets an answer."""
        return max(1.0, min(seconds, self.left()))


def shares(weights, total):
    """{name: seconds after the start by which the section ends}, in the order given. What a section leaves over
    is for those behind it."""
    whole = sum(weights.values())
    ends, sofar = {}, 0.0
    for name, weight in weights.items():
        sofar += weight
        ends[name] = total * sofar / whole
    return ends
