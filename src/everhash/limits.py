"""Limits that the library enforces."""

DIMS = 16_384
"""features a row"""

FEATURES = 16_384
"""random features beside those of a row"""

LABELS = 1_000_000
"""labels a hasher"""

RESULTS = 1_000
"""entries a query may ask for"""

REPLAY = 1_000_000
"""rows remembered a label"""

WIDTH = 2_000_000
"""hash functions a hasher"""

WEIGHTS = 2**26
"""numbers that the functions of one cycle have: bits times the features that they see"""

LABEL_WEIGHTS = 256
"""times that many features, numbers that functions may have more with every label"""

PAYLOAD = 4_096
"""bytes of an entry's payload, as compact JSON in UTF-8"""

NESTING = 64
"""lists and objects inside each other in a payload"""

THUMBNAIL = 32_768
"""bytes of an entry's thumbnail"""

SHARDS = 1_024
"""parts that the entries of a cluster are spread over"""

COPIES = 5
"""copies of each shard of a cluster"""
