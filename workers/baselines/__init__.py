"""Other ways to run a network: reference outputs and latencies to compare with, each taken in a process of its own."""
