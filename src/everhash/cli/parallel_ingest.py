"""Files for a cluster: each is checked, then added, by a Ray task of its own on any node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from everhash import kernels
from everhash.cli.arguments import open_collection
from everhash.cli.formatting import printable
from everhash.cli.ingest import NOTHING, Ingestion
from everhash.cli.preflight import IngestPlan, mixed_ids
from everhash.cli.terminal import Bar
from everhash.collection.api import CollectionApi
from everhash.errors import EverhashError, ServiceError


@dataclass
class ParallelIngestion(Ingestion):
    """The rows of several files, being added to a cluster. Files are done in any order."""

    files_done: int = 0

    def check(self, collection: CollectionApi) -> None:  # noqa: ARG002 - tasks have their own
        """Check every row before the first is applied; ids only within each file."""
        self._check_ids()
        checked = self._each_file("check", "checking", self.plan.count())
        self.total = sum(done.total or 0 for done in checked)

    def apply(self, collection: CollectionApi) -> None:  # noqa: ARG002 - tasks have their own
        """Add file after file, as many at a time as Ray has processors for."""
        began = kernels.clock()
        for done in self._each_file("apply", "ingesting", self.total):
            self.files_done += 1
            self.rows += done.rows
            self.unlabelled += done.unlabelled
            self.skipped += done.skipped
            self.seconds = kernels.clock() - began

    def _check_ids(self) -> None:
        """Raise if some files have ids and others have none."""
        having = {bool(taken and taken.choice.id): file for file, taken in self.plan.taken.items()}
        if len(having) > 1:
            raise mixed_ids(having[True], having[False])

    def _each_file(self, work: str, what: str, total: int | None) -> Iterator[Ingestion]:
        """Let tasks do the work on each file, and yield what each has done."""
        import ray

        task = ray.remote(_work).options(max_retries=0)  # repeated, it would add rows twice
        storage = str(Path(self.target).absolute())
        waiting = {task.remote(work, storage, plan): plan.files[0] for plan in _by_file(self.plan)}
        files = len(waiting)
        try:
            with Bar(what, total) as bar:
                while waiting:
                    (ref,), _ = ray.wait(list(waiting), num_returns=1)
                    done = _result(ref, waiting.pop(ref))
                    n = done.rows + done.skipped if work == "apply" else done.total or 0
                    bar.advance_by(n, f"{files - len(waiting):,} of {files:,} files")
                    yield done
        finally:
            for ref in waiting:
                ray.cancel(ref)

    def interrupted(self) -> str:
        """Return one line on which files are safe after Ctrl-C, and how to continue."""
        if self.total is None:  # they were still being checked
            return NOTHING
        files = f"{self.files_done:,} of {len(self.plan.files):,} files"
        how = "with --resume for the rest" if self.plan.has_ids else "for the other files"
        safe = f"{files} are safe in {printable(self.target)}"
        return f"interrupted: {safe}, and some rows of others (repeat the command {how})"


def _by_file(plan: IngestPlan) -> list[IngestPlan]:
    """Return a plan for each file, which every node finds by its path."""
    return [replace(plan, files=[file.absolute()]) for file in plan.files]


def _work(name: str, target: str, plan: IngestPlan) -> Ingestion | EverhashError:
    """Check the rows of one file, or apply them; runs in a process of Ray."""
    ingestion = Ingestion(target, plan)
    try:
        with open_collection(target) as collection:
            (ingestion.check if name == "check" else ingestion.apply)(collection)
    except EverhashError as error:
        return error
    return ingestion


def _result(ref: Any, file: Path) -> Ingestion:
    """Return what a task has done, or raise what it says went wrong."""
    import ray

    try:
        done: Ingestion | EverhashError = ray.get(ref)
    except ray.exceptions.RayError as error:
        raise ServiceError(
            f"the task that read {file} ended: {str(error).splitlines()[0]:.200}",
            hint="some of its rows may be there; repeat the command with ids and --resume",
        ) from None
    if isinstance(done, EverhashError):
        raise done
    return done
