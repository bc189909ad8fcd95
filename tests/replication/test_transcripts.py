"""How replicas come to agree, as readable transcripts (`transcripts` says how to read them). The controller's decisions
have their own: `tests/cluster/state/test_eligibility.py`."""

from pathlib import Path

import pytest

from tests.replication.transcripts import Room

TRANSCRIPTS = {
    "KIP-101, 1: a follower that does not know yet that a record is committed keeps it over its restart": """
A leads 0 isr A B -> ok
A writes m1 m2 -> m1/0 m2/0, hw 0
B catches up -> m1/0 m2/0, hw 0; m1/0 m2/0, hw 2
A writes m3 -> m1/0 m2/0 m3/0, hw 2
B fetches -> m1/0 m2/0 m3/0, hw 2
B stops -> ok
B starts -> m1/0 m2/0 m3/0, hw 2
B fetches -> m1/0 m2/0 m3/0, hw 3
A stops -> ok
B leads 1 isr B -> ok
B writes m4 -> m1/0 m2/0 m3/0 m4/1, hw 4
A starts -> m1/0 m2/0 m3/0, hw 3
A catches up -> m1/0 m2/0 m3/0 m4/1, hw 4
""",
    "KIP-101, 2: both lose their power, the one with less comes back first and leads": """
A leads 0 isr A B -> ok
A writes m1 -> m1/0, hw 0
B catches up -> m1/0, hw 0; m1/0, hw 1
A writes m2 -> m1/0 m2/0, hw 1
B catches up -> m1/0 m2/0, hw 1; m1/0 m2/0, hw 2
A stops -> ok
B loses 1 -> m1/0, hw 0
B leads 1 isr B -> ok
B writes m3 -> m1/0 m3/1, hw 2
A starts -> m1/0 m2/0, hw 2
A catches up -> diverges 0@1, is cut: m1/0, hw 1; m1/0 m3/1, hw 2
""",
    "KIP-279, 1: a fast fail-over leaves a follower with an epoch that the leader never had": """
A leads 0 isr A B -> ok
A writes m1 -> m1/0, hw 0
B catches up -> m1/0, hw 0; m1/0, hw 1
A stops -> ok
B leads 1 isr B -> ok
B writes m2 m3 -> m1/0 m2/1 m3/1, hw 3
B stops -> ok
A leads 2 isr A -> ok
A starts -> m1/0, hw 1
A writes m4 -> m1/0 m4/2, hw 2
B starts -> m1/0 m2/1 m3/1, hw 3
B catches up -> diverges 0@1, is cut: m1/0, hw 1; m1/0 m4/2, hw 2
""",
    "KIP-279, 2: neither knows the other's epochs, and it takes two rounds": """
A leads 0 isr A B -> ok
A writes m1 -> m1/0, hw 0
B catches up -> m1/0, hw 0; m1/0, hw 1
A leads 1 isr A -> ok
A writes a1 a2 -> m1/0 a1/1 a2/1, hw 3
A stops -> ok
B leads 2 isr B -> ok
B writes b1 -> m1/0 b1/2, hw 2
B stops -> ok
A starts -> m1/0 a1/1 a2/1, hw 3
A leads 3 isr A -> ok
A writes a3 -> m1/0 a1/1 a2/1 a3/3, hw 4
A stops -> ok
B starts -> m1/0 b1/2, hw 2
B leads 4 isr B -> ok
B writes b2 -> m1/0 b1/2 b2/4, hw 3
A starts -> m1/0 a1/1 a2/1 a3/3, hw 4
A catches up -> diverges 2@2, is cut: m1/0 a1/1 a2/1, hw 3; diverges 0@1, is cut: m1/0, hw 1; m1/0 b1/2 b2/4, hw 3
""",
    "KIP-279, 3: the follower's log is longer and newer than that of an unclean leader": """
A leads 0 isr A B C -> ok
A writes m1 m2 -> m1/0 m2/0, hw 0
B catches up -> m1/0 m2/0, hw 0
C fetches -> m1/0 m2/0, hw 0
A leads 1 isr A B -> ok
A writes m3 -> m1/0 m2/0 m3/1, hw 0
B catches up -> m1/0 m2/0 m3/1, hw 2; m1/0 m2/0 m3/1, hw 3
A stops -> ok
B leads 2 isr B -> ok
B writes m4 -> m1/0 m2/0 m3/1 m4/2, hw 4
B stops -> ok
C leads 3 isr C -> ok
C writes c1 -> m1/0 m2/0 c1/3, hw 3
B starts -> m1/0 m2/0 m3/1 m4/2, hw 4
B catches up -> diverges 0@2, is cut: m1/0 m2/0, hw 2; m1/0 m2/0 c1/3, hw 3
A starts -> m1/0 m2/0 m3/1, hw 3
A catches up -> diverges 0@2, is cut: m1/0 m2/0, hw 2; m1/0 m2/0 c1/3, hw 3
""",
    "KIP-966: the last replica in sync loses its power, and what it wrote alone was never committed": """
A leads 0 isr A B C -> ok
A writes m1 m2 -> m1/0 m2/0, hw 0
B catches up -> m1/0 m2/0, hw 0
C fetches -> m1/0 m2/0, hw 0
C stops -> ok
A leads 0 isr A B -> ok
A writes m3 -> m1/0 m2/0 m3/0, hw 2
B catches up -> m1/0 m2/0 m3/0, hw 2; m1/0 m2/0 m3/0, hw 3
B stops -> ok
A leads 0 isr A -> ok
A writes m4 -> m1/0 m2/0 m3/0 m4/0, hw 3
A loses 2 -> m1/0 m2/0, hw 0
A leads 1 isr A -> ok
B starts -> m1/0 m2/0 m3/0, hw 3
B leads 2 isr B -> ok
A catches up -> m1/0 m2/0 m3/0, hw 3
C starts -> m1/0 m2/0, hw 0
C catches up -> m1/0 m2/0 m3/0, hw 3
""",
    "a double fail-over with an unclean election: all take over what the last leader has": """
A leads 0 isr A B C -> ok
A writes m1 -> m1/0, hw 0
B catches up -> m1/0, hw 0
C catches up -> m1/0, hw 0; m1/0, hw 1
A leads 1 isr A B -> ok
A writes m2 -> m1/0 m2/1, hw 1
B catches up -> m1/0 m2/1, hw 1; m1/0 m2/1, hw 2
A stops -> ok
B leads 2 isr B -> ok
B writes m3 -> m1/0 m2/1 m3/2, hw 3
B stops -> ok
C leads 3 isr C -> ok
C writes c1 -> m1/0 c1/3, hw 2
A starts -> m1/0 m2/1, hw 2
A catches up -> diverges 0@1, is cut: m1/0, hw 1; m1/0 c1/3, hw 2
C stops -> ok
A leads 4 isr A -> ok
A writes a1 -> m1/0 c1/3 a1/4, hw 3
B starts -> m1/0 m2/1 m3/2, hw 3
B catches up -> diverges 0@1, is cut: m1/0, hw 1; m1/0 c1/3 a1/4, hw 3
C starts -> m1/0 c1/3, hw 2
C catches up -> m1/0 c1/3 a1/4, hw 3
""",
    "a leader that bounces within its session is replaced, and gives up what its followers did not have": """
A leads 0 isr A B C -> ok
A writes m1 m2 -> m1/0 m2/0, hw 0
B catches up -> m1/0 m2/0, hw 0
C fetches -> m1/0 m2/0, hw 0
A writes m3 -> m1/0 m2/0 m3/0, hw 0
C catches up -> m1/0 m2/0 m3/0, hw 2
A stops -> ok
B leads 1 isr B C -> ok
B writes m4 -> m1/0 m2/0 m4/1, hw 0
A starts -> m1/0 m2/0 m3/0, hw 2
A catches up -> diverges 0@2, is cut: m1/0 m2/0, hw 2; m1/0 m2/0 m4/1, hw 2
C catches up -> diverges 0@2, is cut: m1/0 m2/0, hw 2; m1/0 m2/0 m4/1, hw 2; m1/0 m2/0 m4/1, hw 3
B leads 1 isr A B C -> ok
A has -> m1/0 m2/0 m4/1, hw 2
""",
    "a follower that is behind the leader's start begins anew there": """
A leads 0 isr A -> ok
A writes m1 m2 -> m1/0 m2/0, hw 2
B catches up -> m1/0 m2/0, hw 2
B stops -> ok
A leads 1 isr A -> ok
A writes m3 m4 m5 -> m1/0 m2/0 m3/1 m4/1 m5/1, hw 5
A forgets 4 -> from 4: m5/1, hw 5
B starts -> m1/0 m2/0, hw 2
B catches up -> begins anew: from 4: hw 4; from 4: m5/1, hw 5
""",
    "a follower's log starts where the leader's does": """
A leads 0 isr A B -> ok
A writes m1 m2 m3 -> m1/0 m2/0 m3/0, hw 0
B catches up -> m1/0 m2/0 m3/0, hw 0; m1/0 m2/0 m3/0, hw 3
A forgets 2 -> from 2: m3/0, hw 3
B fetches -> from 2: m3/0, hw 3
""",
    "a follower of another epoch gets nothing": """
A leads 1 isr A B -> ok
A writes m1 -> m1/1, hw 0
B stops -> ok
A leads 2 isr A B -> ok
B fetches -> FENCED_LEADER_EPOCH
B starts -> hw 0
A stops -> ok
A leads 3 isr A B -> ok
B fetches -> UNKNOWN_LEADER_EPOCH
""",
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_replicas_agree(tmp_path: Path, name: str) -> None:
    script = TRANSCRIPTS[name].strip()
    room = Room(tmp_path, "ABC" if "C " in script else "AB", in_sync_min=2 if name.startswith("KIP-966") else 1)
    assert room.play(script) == script
