"""What a doctor concludes from facts. Pure: facts are arguments, and each function returns diagnoses."""
