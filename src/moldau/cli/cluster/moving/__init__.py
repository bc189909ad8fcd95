"""Plans that move replicas between brokers, and what carries them out."""
