"""Work that outlives its request: a refresh, and how far it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from everhash.errors import UnknownNameError
from everhash.index.refresh import RefreshReport
from everhash.places import Place
from everhash.serve.errors import describe

KEPT = 100
"""Jobs that can be asked for after they have ended."""


@dataclass(eq=False)
class Job:
    """A refresh that runs, or ran."""

    number: str
    state: str = "running"
    begun: bool = False
    """Whether its turn has come: from then on it misses what is learned."""
    progress: float = 0.0
    report: RefreshReport | None = None
    error: Exception | None = None

    def done(self, report: RefreshReport) -> None:
        """Note that it has succeeded."""
        self.state, self.progress, self.report = "done", 1.0, report

    def failed(self, error: Exception) -> None:
        """Note that it has failed."""
        self.state, self.begun, self.error = "failed", True, error

    def as_json(self, path: Path | None, place: Place) -> dict[str, Any]:
        """Return the job as JSON; `describe` tells of the path and the place."""
        return {
            "job": self.number,
            "state": self.state,
            "progress": self.progress,
            "report": None if self.report is None else asdict(self.report),
            "error": None if self.error is None else describe(self.error, path, place),
        }


class Jobs:
    """The last jobs. Only the event loop touches it."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._made = 0

    @property
    def waiting(self) -> Job | None:
        """The job whose turn has not come: it will do all that another one could."""
        return next((job for job in self._jobs.values() if not job.begun), None)

    def make(self) -> Job:
        """Make a job, and drop the oldest."""
        self._made += 1
        job = self._jobs[str(self._made)] = Job(str(self._made))
        while len(self._jobs) > KEPT:
            del self._jobs[next(iter(self._jobs))]
        return job

    def find(self, number: str) -> Job:
        """Return a job by its number."""
        if number not in self._jobs:
            raise UnknownNameError(
                f"no job {number!r:.40}", hint=f"the last {KEPT} jobs since the start are kept"
            )
        return self._jobs[number]
