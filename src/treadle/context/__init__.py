"""Context: the policies that say what of a history that has grown too long is sent. Pure, as the kernel is."""
