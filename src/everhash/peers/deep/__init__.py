"""The deep methods everhash is measured against: small networks that learn bits from images.

everhash.peers.deep.names()                    # what there is
everhash.peers.deep.get("latent", bits=48)     # a method, to be fitted with images and labels
everhash.peers.deep.describe("latent")         # year and citation
everhash.peers.deep.load("latent.safetensors") # what a method's save wrote

They take images, not rows of features, so they are no hashers of a stream and not among
`everhash.peers.names()`. They need PyTorch: the extra `deep`.
"""

from everhash.peers.deep.registry import describe, get, load, names

__all__ = ["describe", "get", "load", "names"]
