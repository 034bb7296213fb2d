"""Pages and the live line of a run: reads, and calls services."""
