"""The web process put together."""
