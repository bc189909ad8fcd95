"""Topics that are left out of the controller's image because their metadata cannot be read. Their names are taken."""

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.controller_queue import ControllerQueue
from moldau.cluster.controlling.directory_placement import DirectoryPlacement
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode


class UnreadableNames(DirectoryPlacement):
    """Refuses the names of topics that were `left_out` of the image because nobody can read them."""

    def __init__(self, metadata: MetadataCache, queue: ControllerQueue):
        super().__init__(metadata, queue)  # each broker chooses its own folders
        self.left_out: set[str] = set()

    def refusal(self, name: str) -> Refusal | None:
        if name not in self.left_out:
            return super().refusal(name)
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists, but its metadata cannot be read")
