"""The memory of Fetch replies: used again once every part of a reply was read, never earlier, and bounded."""

from mmap import mmap

from moldau.client.consuming.fetched.reply_memory import KEPT_BYTES, HeldReply, ReplyMemory
from moldau.records.arena import BLOCK_BYTES


def received(memory: ReplyMemory, size: int, parts: int) -> tuple[HeldReply, mmap]:
    reply = HeldReply(1, memory)
    room = reply.room(size)
    assert len(room) == size
    reply.parts = parts
    assert isinstance(room.obj, mmap)
    return reply, room.obj


def test_a_reply_gets_the_memory_of_one_that_was_read() -> None:
    memory = ReplyMemory()
    reply, block = received(memory, 100_000, 2)
    reply.part_read()
    assert received(memory, 100_000, 1)[1] is not block
    reply.part_read()
    assert received(memory, BLOCK_BYTES, 1)[1] is block


def test_a_reply_that_no_partition_wants_is_free_at_once() -> None:
    memory = ReplyMemory()
    reply, block = received(memory, 100_000, 0)
    reply.free()
    reply.free()
    assert received(memory, 1, 1)[1] is block
    assert received(memory, 1, 1)[1] is not block


def test_a_larger_reply_gets_larger_memory() -> None:
    memory = ReplyMemory()
    reply, block = received(memory, 100_000, 1)
    reply.part_read()
    larger = received(memory, BLOCK_BYTES + 1, 1)[1]
    assert larger is not block and len(larger) == 2 * BLOCK_BYTES


def test_the_memory_that_is_kept_is_bounded() -> None:
    memory = ReplyMemory()
    replies = [received(memory, KEPT_BYTES // 2, 1)[0] for _ in range(4)]
    for reply in replies:
        reply.part_read()
    reused = [received(memory, 1, 1)[1] for _ in range(4)]
    assert sum(len(block) for block in reused) == KEPT_BYTES + 2 * BLOCK_BYTES
