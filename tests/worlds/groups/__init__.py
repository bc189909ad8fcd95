"""Consumer groups in simulation: members of both protocols, what they were told, and what must be true of it."""
