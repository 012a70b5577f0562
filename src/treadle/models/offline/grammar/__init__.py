"""What a question says: its words, its numbers, days and values, and where they stand. Knows nothing of tools."""
