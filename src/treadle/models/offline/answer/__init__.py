"""What to say: what the tools returned, with what it holds for and what is left out of it."""
