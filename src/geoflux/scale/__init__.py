"""How many processors, and where: queueing, allocation, measuring, scheduling (DRS)."""
