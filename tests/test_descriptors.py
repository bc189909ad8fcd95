"""How the descriptors of a process are shared out."""

import pytest

from moldau.descriptors import SPARE_DESCRIPTORS, share_out
from moldau.errors import StorageError


@pytest.mark.parametrize("descriptors", [100, 256, 1024, 20_000, 1 << 20])
def test_files_replies_and_connections_together_never_need_more_descriptors_than_there_are(descriptors: int):
    shares = share_out(descriptors)
    assert min(shares) > 0
    assert shares.open_files + shares.held + 3 * shares.connections + SPARE_DESCRIPTORS <= descriptors
    assert shares.connections > descriptors // 5 - 20


def test_a_limit_of_descriptors_that_leaves_none_for_a_client_is_refused():
    with pytest.raises(StorageError, match="only 64 files and sockets"):
        share_out(64)
