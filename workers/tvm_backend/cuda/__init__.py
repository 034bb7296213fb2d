"""NVIDIA's GPUs as targets: what one is, how networks are lowered for it, its compiler, and its clock."""
