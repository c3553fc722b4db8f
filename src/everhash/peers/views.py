"""All ways to see a row, by their names in a file."""

from __future__ import annotations

from everhash.learn.rotated_view import Rotated
from everhash.learn.views import Anchored, Centred, Homogeneous, View
from everhash.peers.forest import Forest
from everhash.peers.waves import Waves

VIEWS: dict[str, type[View]] = {
    view.kind: view for view in (Centred, Homogeneous, Rotated, Anchored, Waves, Forest)
}
