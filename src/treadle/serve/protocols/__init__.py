"""Protocols of front ends that exist already: pure functions both ways, from a request to what it asks for, and from
the events of a run to what the client reads. No input or output, and no web framework."""
