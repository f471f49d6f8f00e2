"""The sketch of everything observed: leaves of region, time and bins of features, and queries."""
