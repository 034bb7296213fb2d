"""Running the site: its processes, its checks, its commands."""
