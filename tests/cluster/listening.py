"""Where a process and all that it has started listen: addresses of TCP sockets, by /proc.

python -m tests.cluster.listening STORAGE       starts a local cluster, prints what listens as JSON
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from pathlib import Path

LISTENING = "0A"
"""The state of a socket that waits for connections, as the kernel writes it."""


def family_of(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family_of(int(child))
    return found


def sockets_of(pid: int) -> set[str]:
    """Return the inodes of a process's sockets."""
    links = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(file))
        except OSError:  # closed since
            continue
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def address_of(text: str) -> str:
    """Return an address as people write it, of IPv4 where it is one.

    >>> address_of("0100007F:1F90"), address_of("00000000000000000000000000000000:1F90")
    ('127.0.0.1', '::')
    """
    raw = bytes.fromhex(text.partition(":")[0])
    raw = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    return str(getattr(address, "ipv4_mapped", None) or address)


def listening(pid: int) -> list[tuple[str, str]]:
    """Return each address that the processes of a family listen on, and who does."""
    owners = {inode: one for one in family_of(pid) for inode in sockets_of(one)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and words[9] in owners:
                command = Path(f"/proc/{owners[words[9]]}/cmdline").read_bytes()
                found.append((address_of(words[1]), command.replace(b"\0", b" ").decode()[:80]))
    return found


def main(storage: str) -> None:
    import everhash.cluster

    with everhash.cluster.create(None, storage, 8, 8, shards=2, durability="none") as collection:
        collection.ingest([[1.0] * 8, [2.0] * 8], ["a", "b"])
        json.dump(listening(os.getpid()), sys.stdout)
    import ray

    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
