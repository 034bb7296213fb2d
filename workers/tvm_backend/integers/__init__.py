"""Convolutions and products of whole numbers, two or four at a time.

x86 has one instruction for two products of integers of 16 bits and their sum (PMADDWD), and newer ones have another for four
of 8 bits (VPDPBUSD): two and four times the products of an FMA on float32, with half and a quarter of the bytes of
activations, and exact. Their loops are those of a convolution with so many fewer channels, so TVM's design spaces, the first
configurations and the cost models take them as any other.
"""

from workers.tvm_backend.integers.grouping import FOURS, PAIRS
from workers.tvm_backend.integers.rewriting import FILTERED, rewritten

__all__ = ["FILTERED", "FOURS", "PAIRS", "rewritten"]
