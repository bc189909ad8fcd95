"""State kept in internal topics: decided in pure code, appended as records, applied once committed, then answered."""
