"""What runs on a device elsewhere: `python -m workers.device` there lets a site time programs on it."""
