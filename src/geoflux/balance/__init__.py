"""Balancing: policies that turn observations into plan changes, and static plans."""
