"""A run as one HTML file: its charts are drawn here, its style stands in it, and it opens without a network."""

from apps.dashboard.report.page import pieces

__all__ = ["pieces"]
