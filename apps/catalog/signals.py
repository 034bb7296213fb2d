"""What others may do when something joins the catalog, in its transaction."""

from django.dispatch import Signal

network_added = Signal()
"""Sent with `network`, inside the transaction that keeps it; `uploaded` where somebody sent its file just now. A receiver may
raise Refused: then it is not kept."""
