"""A consumer's membership of its group, in both group protocols."""
