"""The presets, one file a paper; a file's docstring and comments name the source of every number."""
