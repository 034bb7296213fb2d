"""Which operators of ONNX can be taken, told at upload without loading TVM, which takes longer than all else there."""

from __future__ import annotations

from collections.abc import Iterable

from workers.networks.errors import NetworkError
from workers.networks.recurrent import ACTIVATIONS, STEPS

CONVERTED = frozenset(
    """
    Abs Acos Acosh Add AffineGrid AllClassNMS And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool
    BatchNormalization BiasGelu BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Compress Concat
    ConcatFromSequence Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout
    DynamicQuantizeLinear Einsum Elu EmbedLayerNormalization Equal Erf Exp Expand EyeLike FastGelu Flatten Floor Gather
    GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample
    GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN LayerNormalization
    LeakyRelu Less LessOrEqual Log LogSoftmax LpPool MatMul MatMulInteger MatMulInteger16 Max MaxPool MaxRoiPool MaxUnpool
    Mean MeanVarianceNormalization Min Mish Mod Mul Neg NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement
    OptionalHasElement Or PRelu Pad Pow QuantizeLinear RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize RoiAlign Round
    Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
    SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size SkipLayerNormalization Slice Softmax Softplus Softsign
    SpaceToDepth Split SplitToSequence Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unique
    Unsqueeze Upsample Where Xor
    """.split()
)
"""Those that TVM 0.27's frontend has a converter for."""

COUNTED = frozenset({"Range"})
SIZED_BY_VALUES = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"}) | COUNTED
"""Operators whose outputs have as many elements as the values of their inputs ask for; sizes here are fixed."""

UNCHECKED = frozenset({"EmbedLayerNormalization", "MaxRoiPool"})
"""Operators that look up at places which nobody can bound from outside (`networks.indices`)."""


def unsupported(kinds: Iterable[str]) -> list[str]:
    """Those of the ONNX operator types that TVM's frontend cannot convert, sorted."""
    return sorted(set(kinds) - CONVERTED - {"If"})


def check_operators(kinds: Iterable[str]) -> None:
    """Raises NetworkError naming those of the ONNX operator types that cannot be imported. Cleaning takes out some."""
    found = set(kinds)
    if sized := found & SIZED_BY_VALUES:
        raise NetworkError(
            _listed(sized),
            "how much comes out of these operators depends on the values, and sizes are fixed here",
            "export the network with its masks as inputs, in place of lengths"
            if sized == COUNTED
            else "export the network without its post-processing, up to the boxes and scores, and choose among them outside",
        )
    if unchecked := found & UNCHECKED:
        raise NetworkError(
            _listed(unchecked),
            "TVM looks up in what these read without looking where it ends",
            "export the network with standard operators, before ONNX Runtime's own optimisation",
        )
    if recurrent := found & ACTIVATIONS.keys():
        raise NetworkError(
            _listed(recurrent),
            "only recurrent operators of constant weights, usual activations, whole sequences with the time in front and "
            f"{STEPS} steps at most are written out here, without clip, peepholes and input_forget",
            "give a shorter sequence, or export the network with layout=0 and without these, or with its steps written out",
        )
    if missing := unsupported(found):
        raise NetworkError(_listed(missing), "TVM cannot import these operators", "export the network with others")


def _listed(kinds: Iterable[str]) -> str:
    return ", ".join(sorted(kinds))
