"""Comparisons with TVM's own tuning and with other runtimes, resumable cell by cell."""
