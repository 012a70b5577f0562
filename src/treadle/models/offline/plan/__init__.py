"""What to call: the tools that fit a question, their arguments, and an account of every word of it."""
