"""Showing: what an answer says, as data, sentences, pages and files. Asks nothing."""
