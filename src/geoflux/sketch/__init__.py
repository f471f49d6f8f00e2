"""A sketch of everything observed, that answers queries about it."""
