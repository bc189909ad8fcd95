"""A whole cluster in one thread and in virtual time, every decision drawn from one seed."""
