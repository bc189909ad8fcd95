"""The coordinator of groups: what all kinds of groups share, above all their offsets."""
