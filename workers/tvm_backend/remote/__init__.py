"""Devices elsewhere, which time what is built here: the other end of `workers.device`."""
