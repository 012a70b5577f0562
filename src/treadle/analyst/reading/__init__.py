"""Reading: how rows become keys and exact amounts in a session's engine, and how sources of files are read."""
