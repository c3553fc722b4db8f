"""What the tests of deep methods share."""

from tests.unit.peers.deep.pictures import learned

__all__ = ["learned"]
