"""The server beside a run: an interface for programs, and a page to look at."""
