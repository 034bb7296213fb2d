"""Processes with limits, groups that leave no orphan, and the host-wide measuring lock. Standard library only, Linux.

Left without imports on purpose: the bootstrap of every child passes through this package before it may load anything.
"""
