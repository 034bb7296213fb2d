"""What users ask for: runs, pauses, stops, artifacts, shapes, a new look at the machine."""
