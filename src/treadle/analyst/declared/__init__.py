"""What is declared: sources, their dimensions and measures, formats, filters and hierarchies. Reads no data."""
