"""How large requests may get, and how many and how long they may be, in one table.

`GET /limits` serves it. What the library limits too stands in `everhash.limits`.
"""

from __future__ import annotations

from everhash import limits
from everhash.wire.ids import ID_CHARACTERS

LABELS = 100_000
"""labels of the collection; more of them widen the codes on a stranger's order"""

NEW_LABELS = 1_000
"""labels never seen before in one request"""

QUERIES = 1_000
"""rows of a search"""

ROWS = 10_000
"""rows, or ids, of any other request"""

PAGE = 1_000
"""entries, or labels, told of in one answer"""

GIVEN = 100_000
"""labels of all rows of a request"""

BODY = 64 << 20
"""bytes of a body"""

LABEL = 256
"""characters of a label"""

REQUESTS = 64
"""requests worked on at once"""

SECONDS = 60
"""until an answer has to be there"""

BODY_SECONDS = 30
"""until a body has to be there"""

HEAD_SECONDS = 10
"""until the head of a request has to be there, from its first byte or the connection on; and the
rest of a body that nobody reads, from the answer on"""

STALL_SECONDS = 60
"""that a client may take nothing of an answer that waits for it"""

TAKE_SECONDS = 120
"""until a client has to have taken an answer, or the piece that is sent where it comes in pieces"""

UNSENT = 256 << 20
"""bytes of all answers that are not taken"""

CONNECTIONS = 1_024
"""connections at once, fewer where the process may open few files"""

BODIES = 256 << 20
"""bytes of all bodies that are held at once"""

ARRIVING = 256
"""bodies that arrive at once"""

MATCHES = 1_000_000
"""matches of an answer"""

EXPLAINED = 20_000_000
"""bits of all explanations of an answer"""

LISTENERS = 32
"""connections to /events"""

SNAPSHOTS = 4
"""snapshots that are sent at once"""

SNAPSHOT_SPEED = 256 << 10
"""bytes a second that a client has to take of a snapshot, after the first minute"""

TABLE: dict[str, int] = {
    "dims": limits.DIMS,
    "labels": LABELS,
    "new_labels": NEW_LABELS,
    "k": limits.RESULTS,
    "queries": QUERIES,
    "rows": ROWS,
    "page": PAGE,
    "row_labels": GIVEN,
    "body": BODY,
    "label": LABEL,
    "id": ID_CHARACTERS,
    "payload": limits.PAYLOAD,
    "thumbnail": limits.THUMBNAIL,
    "requests": REQUESTS,
    "seconds": SECONDS,
}
"""What clients have to know."""
