"""3 x 3 convolutions by Winograd's minimal filtering (Lavin and Gray 2016, section 4).

F(m x m, 3 x 3) computes a tile of m x m outputs from m + 2 squared inputs with (m + 2)^2 products instead of 9 m^2: the
convolution becomes a transform of the input, one matrix product for each of the (m + 2)^2 places in a tile, and a
transform of the product. The three are operators of their own, so each is tuned; what follows the convolution (bias, sum,
Relu) is fused into the last.
"""

from workers.tvm_backend.winograd.rewriting import transformed

__all__ = ["transformed"]
