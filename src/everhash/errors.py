"""Every error everhash raises on purpose.

    EverhashError
    ├── InputError (ValueError)         something handed in cannot be used
    │   ├── FeatureTypeError (TypeError)   features that are no numbers
    │   ├── DimensionError              wrong number of features, or not a table of rows
    │   ├── NotFiniteError              NaN, infinity, or beyond float32, with the row's number
    │   ├── LabelError                  a label that cannot be a label, or y of another length
    │   ├── OptionError                 an option outside what is documented
    │   ├── IdError                     something that cannot be an id
    │   ├── DuplicateIdError            an id that an entry has, or had
    │   ├── StaleCodesError             codes of another version of the mapping
    │   └── LimitError                  more labels, features, bits or results than supported
    │       └── TooLargeError           more rows, queries or bytes than one request may have
    ├── UnknownNameError (KeyError)     a label or name nobody has seen
    │   └── UnknownIdError              an id no entry has
    ├── NotFittedError (ValueError, AttributeError)   asked before any row was learned
    ├── NotOnlineError (TypeError)      a stream for a method that needs all its rows at once
    ├── ModelFileError (ValueError)     a model file that is damaged, foreign or hostile
    ├── CollectionFileError (ValueError)   the same of a collection's file
    ├── StoreError (OSError)            a file that could not be read or written: disk full, no room
    │   ├── DiskFullError               no room is left for a write
    │   ├── LockedError                 another process writes to the collection
    │   └── ReadOnlyError               a write to what was opened for reading, or is closed
    ├── ServiceError (ConnectionError)  a service that cannot be reached, or answers as none would
    └── DataMissingError (FileNotFoundError)          a dataset that is not on this machine

Each says what was expected, what came, and in `hint` what to do. None of them leaves anything
half-applied; only after a `ServiceError` a write may have been applied, as a whole. `EXIT_CODES`
maps each class to the exit status of the command line.
"""

from __future__ import annotations

from typing import ClassVar


class EverhashError(Exception):
    """Base of all deliberate errors: a one-line message, and a hint that says what to do."""

    carries: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes with the values that the message is about."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(EverhashError, ValueError):
    """Something handed in cannot be used."""


class FeatureTypeError(InputError, TypeError):
    """Features that cannot be read as numbers."""


class DimensionError(InputError):
    """An array has the wrong number of features or the wrong number of axes."""

    carries = ("expected", "got")

    def __init__(
        self, *, expected: int, got: int, what: str = "features", owner: str = "this hasher"
    ) -> None:
        super().__init__(
            f"X has {got} {what}, but {owner} is expecting {expected} {what} as input",
            hint="embed the data as before, or start a new one",
        )
        self.expected = expected
        self.got = got


class NotFiniteError(InputError):
    """A row holds NaN or infinity, or a value float32 cannot work with."""

    carries = ("row",)

    def __init__(self, *, row: int) -> None:
        super().__init__(
            f"row {row} holds NaN, infinity or a value beyond 1e37",
            hint="drop or repair the row; nothing of this batch was used",
        )
        self.row = row


class LabelError(InputError):
    """A label that cannot be a label, or labels that do not line up with the rows."""


class OptionError(InputError):
    """An option outside what is documented."""


class LimitError(InputError):
    """More labels, features or bits than everhash supports."""


class TooLargeError(LimitError):
    """More rows, queries or bytes than one request to a service may have."""


class IdError(InputError):
    """Something that cannot be an id."""


class DuplicateIdError(InputError):
    """An id that an entry already has, or once had."""

    carries = ("id",)

    def __init__(self, value: int | str) -> None:
        super().__init__(
            f"id {value!r} is taken",
            hint="ids are never used again, not even after a removal; nothing was added",
        )
        self.id = value


class StaleCodesError(InputError):
    """Codes made by another version of the mapping than the entries they are compared with."""

    carries = ("expected", "got")

    def __init__(self, *, expected: int, got: int) -> None:
        super().__init__(
            f"codes of mapping version {got}, entries of version {expected}",
            hint="encode the queries again, or pass rows and let the index encode them",
        )
        self.expected = expected
        self.got = got


class UnknownNameError(EverhashError, KeyError):
    """A label or a name that nobody has seen."""


class UnknownIdError(UnknownNameError):
    """An id that no entry has."""

    carries = ("id",)

    def __init__(self, value: int | str) -> None:
        super().__init__(f"no entry has id {value!r}", hint="nothing was changed")
        self.id = value


class NotFittedError(EverhashError, ValueError, AttributeError):
    """The hasher was asked for codes before it saw a row."""

    def __init__(self) -> None:
        super().__init__("this hasher has not seen a row yet", hint="call partial_fit(X, y) first")


class NotOnlineError(EverhashError, TypeError):
    """A stream was given to a method that needs all its rows at once."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} is a batch method: it learns from all rows at once",
            hint="call fit(X, y) with all of them; 'everhash' and the other online methods learn "
            "from a stream",
        )


class ModelFileError(EverhashError, ValueError):
    """A model file that is damaged, foreign, or made to do harm."""


class CollectionFileError(EverhashError, ValueError):
    """A collection's file that is damaged, foreign, of an unknown version, or made to do harm."""


class StoreError(EverhashError, OSError):
    """A file could not be read or written. The call it happened in changed nothing."""


class DiskFullError(StoreError):
    """There is no room left on the disk. The call it happened in changed nothing."""


class LockedError(StoreError):
    """Another process, or another handle in this one, writes to the collection."""


class ReadOnlyError(StoreError):
    """A write to a collection that was opened for reading, or a call after `close`."""


class ServiceError(EverhashError, ConnectionError):
    """A service could not be reached, did not answer in time, or not as a service does.

    Unlike all others it may leave something done: the hint of a lost answer to a write says so.
    """


class DataMissingError(EverhashError, FileNotFoundError):
    """A dataset that is not on this machine."""


class CodebookWarning(UserWarning):
    """A cycle has more labels than there are distinct words; words are being reused."""


EXIT_CODES: dict[type[EverhashError], int] = {
    InputError: 2,
    NotOnlineError: 2,
    UnknownNameError: 3,
    NotFittedError: 4,
    ModelFileError: 5,
    CollectionFileError: 5,
    DataMissingError: 6,
    LockedError: 8,
    StoreError: 7,
    ServiceError: 9,
}


def exit_code(error: EverhashError) -> int:
    """Return the process exit status for an error; 1 where no class above says otherwise."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
