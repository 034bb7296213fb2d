"""The process of one run: puts the pipeline and a backend together."""
