"""The folders of `log.dirs`: which logs are in them, how they are opened, closed, deleted."""
