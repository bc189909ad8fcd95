"""The group coordinator: what all kinds of groups share."""
