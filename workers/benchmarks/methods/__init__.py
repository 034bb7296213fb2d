"""Methods against methods: on recorded landscapes or live, resumable cell by cell, with the papers' claims."""
