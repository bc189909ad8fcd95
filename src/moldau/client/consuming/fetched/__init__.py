"""What was fetched for a partition: records, epochs, positions, what is handed out next."""
