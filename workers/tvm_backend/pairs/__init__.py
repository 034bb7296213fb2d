"""Convolutions and products of whole numbers, two at a time.

x86 has one instruction for two products of integers of 16 bits and their sum (PMADDWD): twice the products of an FMA on
float32, with half the bytes of activations, and exact. Its loops are those of a convolution with half of the channels, so
TVM's design spaces, the first configurations and the cost models take it as any other.
"""

from workers.tvm_backend.pairs.rewriting import rewritten

__all__ = ["rewritten"]
