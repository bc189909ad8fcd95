"""A process that counts up a node of a metadata file, and says each number that was answered:
`python -m tests.metadata_store.file_counter FILE TIMEOUT_S`."""

import asyncio
import itertools
import sys
from pathlib import Path

from moldau.metadata_store.shared_file_session import SharedFileSession
from moldau.metadata_store.store import BadVersion, Create, Delete, Set, node_at
from moldau.runtime import Runtime


async def main(path: Path, timeout_s: float) -> None:
    session = await SharedFileSession.open(path, timeout_s, Runtime())
    own = f"/own-{session.session_id}"
    await session.multi([Create(own, ephemeral=True)])
    for number in itertools.count():
        node = await session.read(node_at("/count"))
        assert node is not None
        counted = Set("/count", b"%d" % (int(node.data) + 1), node.version)
        many = [Create(f"{own}-{number}-{one}", ephemeral=True) for one in range(number % 20)]
        try:
            await session.multi([counted, *many])
        except BadVersion:
            continue
        print(int(node.data) + 1, flush=True)
        await session.multi([Delete(one.path) for one in many])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
