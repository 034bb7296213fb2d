"""Pages, one file a part of the site."""
