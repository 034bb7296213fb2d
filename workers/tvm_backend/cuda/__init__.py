"""NVIDIA's GPUs as targets: what one is, how networks are lowered for it, and its clock (`..nvrtc` compiles)."""
