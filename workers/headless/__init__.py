"""The product without web, Redis and database: the same pipeline, a directory instead."""
