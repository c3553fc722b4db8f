"""The methods everhash is measured against, as hashers like ours.

everhash.peers.names()                     # what there is
everhash.peers.get("mihash", bits=32)      # a hasher
everhash.peers.describe("mihash")          # year, citation, what it needs
everhash.peers.deep                        # methods that learn from images
"""

from everhash.peers import deep
from everhash.peers.description import Description
from everhash.peers.registry import describe, get, names

__all__ = ["Description", "deep", "describe", "get", "names"]
