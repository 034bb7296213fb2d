"""What the web process and the workers say to each other: standard library only, so that both sides may import it."""
