"""What statements are made of: terms, parameters, and proofs that write them out."""
