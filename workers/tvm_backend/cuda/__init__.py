"""NVIDIA's GPUs as targets: what one is, its ceilings and its clock (`..nvrtc` compiles)."""
