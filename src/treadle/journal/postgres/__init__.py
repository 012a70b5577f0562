"""Runs kept in a PostgreSQL database; the package psycopg is loaded when the first such journal is made."""
