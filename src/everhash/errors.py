"""Every error everhash raises on purpose.

    EverhashError
    ├── InputError (ValueError)         an argument that cannot be used
    │   ├── FeatureTypeError (TypeError)   features that are not numbers
    │   ├── DimensionError              wrong number of features or bits
    │   ├── NotFiniteError              NaN, infinity, or beyond float32, with the row's number
    │   ├── LabelError                  a value that cannot be a label, or y of another length
    │   ├── OptionError                 an option with an unknown or impossible value
    │   ├── IdError                     a value that cannot be an id
    │   ├── DuplicateIdError            an id that an entry has already, or given twice
    │   ├── StaleCodesError             codes of another version of the mapping
    │   ├── LabelConflictError          an entry with other labels than the caller expects
    │   └── LimitError                  more labels, features, bits or results than supported
    │       └── TooLargeError           more rows, queries or bytes than one request may have
    ├── UnknownNameError (KeyError)     an unknown label or name
    │   └── UnknownIdError              an id that no entry has
    ├── NotFittedError (ValueError, AttributeError)   used before any row was learned
    ├── NotOnlineError (TypeError, AttributeError)   a stream for a method that needs all rows
    ├── ModelFileError (ValueError)     a model file that is damaged, foreign or hostile
    ├── CollectionFileError (ValueError)   a collection's file that is damaged, foreign or hostile
    ├── StoreError (OSError)            a file that could not be read or written
    │   ├── DiskFullError               no space left on the disk
    │   ├── LockedError                 another process writes to the collection
    │   ├── ReadOnlyError               a write to a collection opened for reading
    │   └── ClosedError                 a call to a collection that was closed, or before a fork
    ├── ServiceError (ConnectionError)  a service that cannot be reached, or fails to answer
    └── DataMissingError (FileNotFoundError)          a dataset that is not on this machine

`message` says what was expected and what was given, `hint` what to do. Their templates may name
calls and options as `everhash.places` describes; `told` writes them for the place where they are
read. A call that raises one has changed nothing, with two exceptions, both over HTTP: after a
`ServiceError` a write may have been applied, and a write of more than one request takes is sent in
several, of which those before the error stay. The hint says so.
`EXIT_CODES` maps each class to the exit status of the command line.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

from everhash.places import Place, told


class EverhashError(Exception):
    """Base of all errors here: a one-line message, and a hint that says what to do."""

    carries: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes with the values that the message is about."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message_template = message
        self.hint_template = hint

    @property
    def message(self) -> str:
        """What was expected and what was given, in the words of Python."""
        return told(self.message_template, "python")

    @property
    def hint(self) -> str:
        """What to do, in the words of Python; empty where there is nothing to say."""
        return told(self.hint_template, "python")

    def told(self, place: Place) -> EverhashError:
        """Return this error in the words of a place: message and hint as people write it there."""
        error = type(self).__new__(type(self))  # not the constructor, which makes the message anew
        vars(error).update(vars(self))
        message, hint = told(self.message_template, place), told(self.hint_template, place)
        EverhashError.__init__(error, message, hint=hint)
        return error

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Cross over to another process as it is: constructors take the values, not the message."""
        return _as_it_was, (type(self), self.args, vars(self))


def _as_it_was(kind: type[EverhashError], args: tuple[Any, ...], values: Any) -> EverhashError:
    """Return an error with what it had in the process that raised it."""
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(values)
    return error


class InputError(EverhashError, ValueError):
    """An argument that cannot be used."""


class FeatureTypeError(InputError, TypeError):
    """Features that are not numbers."""


class DimensionError(InputError):
    """Rows with the wrong number of features, or codes with the wrong number of bits."""

    carries = ("expected", "got")

    def __init__(
        self, *, expected: int, got: int, what: str = "features", owner: str = "this hasher"
    ) -> None:
        super().__init__(
            f"{{say X has}} {got} {what}, but {owner} is expecting {expected} {what} as input",
            hint="embed the data as before, or start a new one",
        )
        self.expected = expected
        self.got = got


class NotFiniteError(InputError):
    """A row with NaN, infinity, or a value beyond float32."""

    carries = ("row",)

    def __init__(self, *, row: int) -> None:
        super().__init__(
            f"row {row} holds NaN, infinity or a value beyond 1e37",
            hint="drop or repair the row",
        )
        self.row = row


class LabelError(InputError):
    """A value that cannot be a label, or not as many labels as rows."""


class OptionError(InputError):
    """An option with an unknown or impossible value."""


class LimitError(InputError):
    """More labels, features, bits or results than everhash supports."""


class TooLargeError(LimitError):
    """More rows, queries or bytes than one request to a service may have."""


class IdError(InputError):
    """A value that cannot be an id."""


class DuplicateIdError(InputError):
    """An id that an entry already has, or that was given twice."""

    carries = ("id",)

    def __init__(self, value: int | str, *, twice: bool = False) -> None:
        super().__init__(
            f"id {value!r} is {'given twice' if twice else 'taken'}",
            hint="give each entry an id of its own; nothing was added"
            if twice
            else "{say taken}; nothing was added",
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


class LabelConflictError(InputError):
    """An entry has other labels than the caller expects: somebody has changed them."""

    carries = ("id",)

    def __init__(
        self, value: int | str, *, has: Iterable[Hashable], expected: Iterable[Hashable]
    ) -> None:
        super().__init__(
            f"entry {value!r} has {_labels_in_words(has)}, expected {_labels_in_words(expected)}",
            hint="somebody has changed it: look at it again; no entry was changed",
        )
        self.id = value


def _labels_in_words(labels: Iterable[Hashable]) -> str:
    """Return labels in a line that is not too long, in an order that is the same in every run."""
    names = sorted(f"{label!r:.80}" for label in labels)
    more = [f"{len(names) - 5} more"] if len(names) > 5 else []
    return " and ".join([*names[:5], *more]) or "no label"


class UnknownNameError(EverhashError, KeyError):
    """An unknown label or name."""


class UnknownIdError(UnknownNameError):
    """An id that no entry has."""

    carries = ("id",)

    def __init__(self, value: int | str) -> None:
        super().__init__(f"no entry has id {value!r}", hint="{call entries} lists entries")
        self.id = value


class NotFittedError(EverhashError, ValueError, AttributeError):
    """A hasher was used before it learned a row."""

    def __init__(self) -> None:
        super().__init__("this hasher has not seen a row yet", hint="{say learn first}")


class NotOnlineError(EverhashError, TypeError, AttributeError):
    """A stream was given to a method that needs all its rows at once."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} is a batch method: it learns from all rows at once",
            hint="{say all rows}",
        )


class ModelFileError(EverhashError, ValueError):
    """A model file that is damaged, foreign, or made to do harm."""


class CollectionFileError(EverhashError, ValueError):
    """A collection's file that is damaged, foreign, of an unknown version, or made to do harm."""


class StoreError(EverhashError, OSError):
    """A file could not be read or written. The call that raised it changed nothing."""


class DiskFullError(StoreError):
    """No space is left on the disk. The call that raised it changed nothing."""


class LockedError(StoreError):
    """Another process, or another open collection in this one, writes to the file."""


class ReadOnlyError(StoreError):
    """A write to a collection that was opened for reading."""


class ClosedError(StoreError):
    """A call to a collection after `close`, or in a child of the process that opened it."""


class ServiceError(EverhashError, ConnectionError):
    """A service could not be reached, did not answer in time, or sent an invalid answer.

    Unlike after other errors, a write may have been applied: if so, the hint says it.
    """


class DataMissingError(EverhashError, FileNotFoundError):
    """A dataset that is not on this machine."""


class CodebookWarning(UserWarning):
    """A cycle has more labels than there are distinct words, so words are reused."""


class LabelWarning(UserWarning):
    """Labels that may be meant otherwise: -1, which means "no label" elsewhere."""


EXIT_CODES: dict[type[EverhashError], int] = {
    LabelConflictError: 10,
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
    """Return the process exit status for an error; 1 if its class is not in `EXIT_CODES`."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
