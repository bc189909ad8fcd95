"""What hostile, or only careless, clients cost a broker and the other clients.

A module of this package measures one kind of them. It has `cases(start)`, a generator of figures; `start(settings)` is
a context manager that runs a broker: today's or an earlier one, which the module need not know. Names of figures are
the same for both, and the unit decides what is better (see `side_by_side.ratio`).
"""
