"""How large requests may get, and how many and how long they may be, in one table.

`GET /limits` serves it. What the library limits too stands in `everhash.limits`. How many
connections one address opens is a reverse proxy's to limit: docs/service.md has a tested example.
"""

from __future__ import annotations

from everhash import limits
from everhash.wire.ids import ID_CHARACTERS

LABELS = 100_000
"""labels of the collection; each widens the codes, and a client could send them without end"""

NEW_LABELS = 1_000
"""labels never seen before in one request"""

QUERIES = 1_000
"""rows of a search"""

ROWS = 10_000
"""rows, or ids, of any other request"""

PAGE = 1_000
"""entries, or labels, in one answer"""

ROW_LABELS = 100_000
"""labels of all rows of a request"""

BODY = 64 << 20
"""bytes of a body"""

LABEL = 256
"""characters of a label"""

REQUESTS = 64
"""requests worked on at once"""

SECONDS = 60
"""until a body has to be there, and the answer to it"""

BODIES = 256 << 20
"""bytes of all bodies that are held at once"""

HEAD = 64 << 10
"""bytes of a head: of the line and the headers of a request, and of what follows a chunked body"""

HEADERS = 100
"""headers of a request"""

HEAD_SECONDS = 10
"""until a head has to be there, and the rest of a body that nobody reads"""

CONNECTIONS = 1_000
"""connections at once; another one takes the place of the one that has been idle longest"""

KEEP_ALIVE = 75
"""seconds an idle connection is kept"""

MATCHES = 1_000_000
"""matches of an answer"""

ANSWER = 128 << 20
"""bytes of an answer"""

READ_SECONDS = 60
"""that a client may take nothing of its answer"""

ANSWERS = 256 << 20
"""bytes of all answers that wait to be read by their clients"""

PAYLOADS = 10_000
"""payloads that are in memory at once, and matches of a query of /radius that may have some"""

EXPLAINED = 20_000_000
"""bits of all explanations, or of all codes, of an answer"""

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
    "row_labels": ROW_LABELS,
    "body": BODY,
    "answer": ANSWER,
    "label": LABEL,
    "id": ID_CHARACTERS,
    "payload": limits.PAYLOAD,
    "thumbnail": limits.THUMBNAIL,
    "requests": REQUESTS,
    "seconds": SECONDS,
}
"""What clients have to know."""
