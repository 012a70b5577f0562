"""Remote engines: databases that make groups themselves, and what of a question each of them can decide."""
