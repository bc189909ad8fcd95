"""The group coordinator: pure decisions first, then the host that carries them out."""
