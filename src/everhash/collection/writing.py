"""What all calls that change a collection share: locks, one transaction each, and refreshing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from everhash.collection.changeset import Changeset, write_changeset
from everhash.collection.loading import Loaded
from everhash.collection.search_calls import SearchCalls
from everhash.errors import CollectionFileError, EverhashError, StoreError
from everhash.index.index import Index
from everhash.index.refresh import RefreshReport, Steps, report_of
from everhash.store.schema import VERSION
from everhash.store.store import Store

AT_ONCE = 4096
"""Unlabelled entries that are refreshed inside the call that made them stale; more go behind."""
MANY_REMOVED = 4096
"""Removed entries from which on opening a collection may drop their places."""
PATIENCE = 0.05
"""Seconds that a refresh in the background waits for a lock before it looks whether to stop."""

logger = logging.getLogger(__name__)


@dataclass
class WriteCall:
    """A call that may change the collection, while it has both locks."""

    state: Loaded
    changes: Changeset | None = None
    """None until memory begins to change."""

    def begin(self) -> Changeset:
        """Say that memory is about to change; return where to note what has to be written."""
        self.changes = Changeset(whole=not self.state.recorder.hasher_is_saved)
        return self.changes


class Due(NamedTuple):
    """What is to be done in the background."""

    refresh: bool
    cells: bool


def _due_of(index: Index) -> Due:
    return Due(index.refresh_due, index.cells_due)


class Writing(SearchCalls):
    """Transactions and refreshes; the calls that use them are in the subclasses."""

    def __init__(self, store: Store, *, auto_refresh: bool = True) -> None:
        self._auto_refresh = auto_refresh
        self._behind: threading.Thread | None = None
        self._stopping = threading.Event()
        super().__init__(store)

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping.

        A reader may ask what it would do; it catches up first, since the file may have the features
        that it takes for the newest state only.
        """
        if dry_run and self._store.readonly:
            with self._in_file(), self._in_memory() as state:
                return state.index.refresh(dry_run=True)
        self._stop_refreshing()
        with self._writer_lock:
            report = report_of(self.refresh_steps(dry_run=dry_run))
            if not dry_run and self._due().cells:
                for _ in self._cell_steps():
                    pass
            return report

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Refresh a slice at a time, yielding the share done; any other call may come in between.

        All of it becomes true with the last step, and nothing if that is not reached. The report is
        what the generator returns, and in `stats`.
        """
        with self._writing(refreshing=True) as call:
            index = call.state.index
            steps = index.refresh_steps(dry_run=dry_run)
        with closing(steps):
            while (share := self._step(index, steps)) is not None:
                yield share
        return index.last_refresh

    def _step(self, index: Index, steps: Steps) -> float | None:
        """Refresh one slice; return None once there is none left and the file has it all."""
        with self._slice(index) as call:
            share = next(steps, None)
            if share is None and not index.last_refresh.dry_run:
                call.begin().refreshed = index.last_refresh
        if share is None:
            self._refresh_behind()
        return share

    @contextmanager
    def _slice(self, index: Index) -> Iterator[WriteCall]:
        """Lock the collection for a part of a longer work on this index."""
        with self._writing(refreshing=True) as call:
            if call.state.index is not index:
                raise StoreError(
                    "a call in between failed, which undid the refresh", hint="refresh again"
                )
            yield call

    def _cell_steps(self) -> Generator[float, None, None]:
        """Make cells a slice at a time, as `refresh_steps` refreshes."""
        with self._writing(refreshing=True) as call:
            index = call.state.index
            steps = index.cell_steps()
        with closing(steps):
            while True:
                with self._slice(index) as call:
                    share = next(steps, None)
                    if share is None:
                        call.begin()
                if share is None:
                    return
                yield share

    def compact(self) -> int:
        """Drop the places of removed entries for good; return how many there were.

        They take some bytes each, in memory and in the file. Entries that are replaced, updated or
        removed leave one behind; opening a collection compacts it once they are the majority.
        The numbers that `page` counts by change.
        """
        with self._writing(refreshing=True) as call:
            if call.state.index.removed == 0:
                return 0
            changes = call.begin()
            changes.compact = True
            return call.state.index.removed

    def compact_if_worth_it(self) -> None:
        """Compact a collection that is mostly places of removed entries, or make cells if due.

        A file of an older version stays as it is until somebody writes.
        """
        with self._in_memory() as state:
            worth = state.index.removed > max(MANY_REMOVED, len(state.index))
            cells_due = state.index.cells_due and self._store.version == VERSION
        if worth:
            self.compact()
        elif cells_due:
            self._refresh_behind()

    # Refreshing by itself

    def _refresh_at_once(self, call: WriteCall) -> None:
        """Refresh inside the call, where that takes no time that anybody would notice."""
        index = call.state.index
        coded = index.coded
        few = coded is not None and len(coded) <= AT_ONCE and not coded.refreshing
        if call.changes is not None and self._auto_refresh and few and index.refresh_due:
            try:
                call.changes.refreshed = index.refresh()
            except CollectionFileError as error:  # features are damaged: no reason to lose a write
                logger.warning("entries stay stale: %s", error)

    def _refresh_behind(self) -> None:
        """Start refreshing in the background if a publication has left entries stale."""
        with self._state_lock:
            state = self._loaded
            due = self._auto_refresh and state is not None and any(_due_of(state.index))
            coded = None if state is None else state.index.coded
            taken = coded is not None and coded.refreshing  # its last step comes here again
            if due and not taken and not self._is_refreshing() and not self._stopping.is_set():
                self._behind = threading.Thread(target=self._refresh_until_done, daemon=True)
                self._behind.start()

    def _refresh_until_done(self) -> None:
        """Work slice by slice, and again if the mapping was published meanwhile."""
        try:
            while any(due := self._due()) and not self._stopping.is_set():
                work = self.refresh_steps() if due.refresh else self._cell_steps()
                with closing(work) as steps:
                    while self._step_behind(steps):
                        pass
        except EverhashError as error:
            # what is stale stays visible in stats, and the next write tries again
            logger.warning("refresh in the background stopped: %s", error)
            self._behind = None
            return
        self._behind = None
        self._refresh_behind()  # a write may have come after the last look

    def _step_behind(self, steps: Generator[float, None, Any]) -> bool:
        """Do one slice; return False at the end, or if the refresh is to stop.

        Whoever wants it to stop may have the lock, so it does not wait for the lock for ever.
        """
        while not self._writer_lock.acquire(timeout=PATIENCE):
            if self._stopping.is_set():
                return False
        try:
            return not self._stopping.is_set() and next(steps, None) is not None
        finally:
            self._writer_lock.release()

    def _is_refreshing(self) -> bool:
        """Whether a refresh is under way; its thread does not exist in a child that was forked."""
        behind = self._behind
        return behind is not None and behind.is_alive()

    def _due(self) -> Due:
        with self._in_memory() as state:
            return _due_of(state.index)

    def _stop_refreshing(self) -> None:
        """End a refresh in the background before its end; a later write begins it again."""
        behind = self._behind
        if behind is not None and behind is not threading.current_thread():
            self._stopping.set()
            behind.join()
            self._stopping.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no refresh is under way in the background; return whether that is so."""
        behind = self._behind
        if behind is not None:
            behind.join(timeout)
        return self._behind is None

    def close(self) -> None:
        """Close the file. Calls after this raise `ClosedError`."""
        if not self._store.inherited:
            self._stop_refreshing()
        super().close()

    # Transactions

    @contextmanager
    def _writing(self, *, refreshing: bool = False) -> Iterator[WriteCall]:
        """Lock the collection for a call that changes it; when the block ends, commit its changes.

        The commit waits for the disk, so the state lock is released before it.
        """
        with self._writer_lock:
            with self._state_lock:
                call = WriteCall(self._load())
            self._store.check_writable()
            undone = self._undone_on_error
            # left from right to left: the state lock is released, then `commit` commits
            with undone(call), ExitStack() as commit, self._state_lock, undone(call):
                yield call
                if not refreshing:
                    self._refresh_at_once(call)
                if call.changes is not None:
                    transaction = commit.enter_context(self._store.transaction())
                    write_changeset(transaction, call.state.recorder, call.changes)
                    call.state.recorder.mark_saved()  # a commit that fails drops the recorder too
        if not refreshing:
            self._refresh_behind()

    @contextmanager
    def _undone_on_error(self, call: WriteCall) -> Iterator[None]:
        """If the block fails, have memory read again from the file: it may be half changed."""
        try:
            yield
        except BaseException:
            if call.changes is not None:
                self._loaded = None
            raise

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions for an operator; see `ReadCalls.stats`."""
        return {**super().stats(), "refreshing": self._is_refreshing()}
