"""The clean-up before import: same results, fewer and better importable operators."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onnx import ModelProto

from workers.networks.activations import (
    hard_activations_to_clips,
    leaky_relus_by_channel,
    mishes_by_one_exponential,
    prelus_to_leaky_relus,
    softpluses_by_one_exponential,
)
from workers.networks.attention import keys_in_whole_vectors
from workers.networks.axes import squeezed_axes_from_the_front, unsqueezed_axes_in_lists
from workers.networks.branches import chosen_branches
from workers.networks.broadcasting import constants_to_full_rank
from workers.networks.check import load
from workers.networks.concatenation import pool_before_concatenation, split_convolutions
from workers.networks.einsum import einsums_to_products, einsums_to_transpositions
from workers.networks.emptiness import drop_empty_parts
from workers.networks.errors import one_line, shown
from workers.networks.extremes import extremes_within, infinite_extremes
from workers.networks.folding import batch_norms_to_products, fold_batch_norms, fold_constants
from workers.networks.graph import operator_types, prune, told
from workers.networks.group_normalizations import groups_by_channels
from workers.networks.guards import guards_behind_products, guards_without_cause
from workers.networks.halves import halves_to_singles
from workers.networks.indices import bounded_indices
from workers.networks.layer_normalizations import layer_normalizations_put_together
from workers.networks.names import names_apart, names_back
from workers.networks.nearest import nearest_by_places
from workers.networks.normalizations import (
    lengths_to_quotients,
    long_layer_normalizations,
    means_and_variances_written_out,
    normalizations_behind_an_axis,
    whole_layer_normalizations,
    whole_skip_normalizations,
)
from workers.networks.opsets import casts_by_type, raise_opset, write_out_functions
from workers.networks.padding import pad_channels
from workers.networks.pads import cut_before_wrapped, explicit_pads, refuse_wide_windows
from workers.networks.parts import places_of_parts
from workers.networks.plain import constants_in_branches, whole_weights
from workers.networks.powers import powers_of_one_type
from workers.networks.quantization import quantization_to_arithmetic
from workers.networks.recurrent import recurrences_to_steps
from workers.networks.resizing import drop_empty_resize_inputs, resized_by_sizes, whole_resizes
from workers.networks.rewriting import (
    clips_to_relus,
    drop_identities,
    drop_unread_outputs,
    drop_unused_inputs,
    drop_weight_inputs,
    fix_reshapes,
    one_hots_of_their_type,
    one_sided_infinities,
    reductions_of_no_axis,
    regions_half_a_pixel_off,
    scalar_depths,
    sort_topk,
    sums_to_additions,
)
from workers.networks.scattering import scattered_by_places
from workers.networks.sequences import sequences_to_tensors
from workers.networks.shape import sizes_of
from workers.networks.shapes import set_static_shapes, tensor_shapes
from workers.networks.shuffling import shuffles_with_channels_last
from workers.networks.taps import taps_within
from workers.networks.transforms import transforms_to_products
from workers.networks.transposed import transposed_convolutions_to_convolutions
from workers.networks.unfixed import refuse_unfixed_inputs
from workers.networks.unmade import refuse_unmade_outputs
from workers.networks.whole_numbers import whole_numbers_as_others
from workers.without import without

Simplifier = Callable[[ModelProto], ModelProto]
Pass = Callable[[ModelProto], str | None]

PASSES: tuple[Pass, ...] = (
    constants_in_branches,
    halves_to_singles,
    # First of those that look into the main graph alone.
    chosen_branches,
    # Once more, of what has stood in branches.
    sequences_to_tensors,
    drop_unread_outputs,
    whole_skip_normalizations,
    drop_identities,
    casts_by_type,
    lengths_to_quotients,
    fold_constants,
    guards_without_cause,
    guards_behind_products,
    refuse_unmade_outputs,
    drop_empty_resize_inputs,
    quantization_to_arithmetic,
    # The sizes of what stands behind operators that are ONNX Runtime's own are known from here on.
    drop_empty_parts,
    transforms_to_products,
    layer_normalizations_put_together,
    long_layer_normalizations,
    whole_layer_normalizations,
    normalizations_behind_an_axis,
    means_and_variances_written_out,
    whole_resizes,
    nearest_by_places,
    resized_by_sizes,
    explicit_pads,
    refuse_wide_windows,
    cut_before_wrapped,
    places_of_parts,
    recurrences_to_steps,
    fold_batch_norms,
    # Before what is enlarged has a Reshape behind it, as a row has that is to be normalised.
    groups_by_channels,
    transposed_convolutions_to_convolutions,
    taps_within,
    powers_of_one_type,
    batch_norms_to_products,
    sort_topk,
    # Before lengths of whole numbers are roots: of one number it is its size.
    reductions_of_no_axis,
    whole_numbers_as_others,
    one_sided_infinities,
    scalar_depths,
    one_hots_of_their_type,
    regions_half_a_pixel_off,
    sums_to_additions,
    einsums_to_transpositions,
    einsums_to_products,
    keys_in_whole_vectors,
    hard_activations_to_clips,
    prelus_to_leaky_relus,
    clips_to_relus,
    pool_before_concatenation,
    split_convolutions,
    # What is split has no concatenation behind it that would have to be told of the padding.
    pad_channels,
    # Whose slopes, of zero channels too, would have to be padded.
    leaky_relus_by_channel,
    # Before what they hold is written out.
    mishes_by_one_exponential,
    softpluses_by_one_exponential,
    # Once more: a Sum of one term leaves an Identity, and an output of the network may hide two in a row.
    drop_identities,
    fix_reshapes,
    # The sizes of a Reshape are constant where those of its result are known.
    refuse_unfixed_inputs,
    squeezed_axes_from_the_front,
    unsqueezed_axes_in_lists,
    shuffles_with_channels_last,
    constants_to_full_rank,
    bounded_indices,
    scattered_by_places,
    extremes_within,
    infinite_extremes,
)
SKIPPED = (
    "fuse_attention", "fuse_gelu", "fuse_gqa", "fuse_lp_normalization", "fuse_rms_norm", "fuse_rope",
    "fuse_consecutive_reduce", "fuse_preceding_mul_into_conv",
)  # fmt: skip
"""Passes of the simplifier that make operators which TVM has no converter for, or imports worse than their parts, and two that
compute something else: of two reductions the sizes are what the second one keeps, and a product that spreads one channel into
several, as of grey images, is taken for one of channels that are there."""
BROUGHT = frozenset(
    "Add And Cast Clip Concat Constant Conv Div Expand Flatten Gather Gemm Identity LayerNormalization MatMul Mul Neg Not "
    "Or Pad Pow ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Reshape Slice Split Sqrt Squeeze Sub Tile Transpose "
    "Unsqueeze Where".split()
)
"""Operators that the simplifier may bring in: TVM imports all of them."""


def cleaned(path: str | Path, input_shapes: Mapping[str, Sequence[int]]) -> ModelProto:
    """The checked and cleaned network of a file; raises NetworkError."""
    return clean(load(path), input_shapes)[0]


def clean(
    model: ModelProto, input_shapes: Mapping[str, Sequence[int]], simplifier: Simplifier | None = None
) -> tuple[ModelProto, list[str]]:
    """A checked network with static shapes, made ready for import, and what was done in plain sentences.

    `model` has no local functions (`load` writes them out) and is used up: its weights may be gigabytes, and are not copied.
    `input_shapes` by input name may leave out static inputs. `simplifier` (onnxsim unless given) may fail: the passes here do
    the needful without it. Raises NetworkError for shapes that do not fit.
    """
    report: list[str] = []
    _apply(whole_weights, model, report)
    before = {value.name for value in model.graph.input}
    _apply(drop_weight_inputs, model, report)
    _apply(drop_unused_inputs, model, report)
    dropped = before - {value.name for value in model.graph.input}
    set_static_shapes(model, {name: s for name, s in input_shapes.items() if name not in dropped})
    _apply(raise_opset, model, report)
    _apply(write_out_functions, model, report)
    _apply(sequences_to_tensors, model, report)
    model = _simplified(model, simplifier or _onnxsim, report)
    # The passes change shapes on the way; inference finds them again.
    del model.graph.value_info[:]
    ports = names_apart(model)
    for step in PASSES:
        _apply(step, model, report)
    names_back(model, ports)
    operators, weights = prune(model)
    unread = (
        told(operators, "operator that nothing reads was dropped", "operators that nothing reads were dropped"),
        told(weights, "constant that nothing reads was dropped", "constants that nothing reads were dropped"),
    )
    report += filter(None, unread)
    # An input that was read for its shape alone has lost its last reader.
    _apply(drop_unused_inputs, model, report)
    return model, report


def _apply(step: Pass, model: ModelProto, report: list[str]) -> None:
    sentence = step(model)
    if sentence is not None:
        report.append(sentence)


def _onnxsim(model: ModelProto) -> ModelProto:
    with without("torch", "sympy"):  # for parts of onnxsim that are not used here: two seconds, and 200 MB
        import onnxsim
    # By way of files: handed over as bytes, the weights would be in memory seven times at once.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "network.onnx")
        path.write_bytes(model.SerializeToString())
        # No random checks here: the verification against the reference covers the whole way.
        result, _ = onnxsim.simplify(str(path), check_n=0, certify=False, skipped_optimizers=list(SKIPPED))
    return result


def _simplified(model: ModelProto, simplifier: Simplifier, report: list[str]) -> ModelProto:
    try:
        result = simplifier(model)
        problem = _difference(model, result)
    except Exception as error:
        # A third-party tool on an unknown network: whatever it raises, the way goes on without it.
        problem = one_line(str(error), 120) or type(error).__name__
    if problem is not None:
        report.append(f"the ONNX simplifier was not used ({problem}); the own passes alone cleaned the network")
        return model
    if len(result.graph.node) != len(model.graph.node):
        report.append(f"the ONNX simplifier brought {len(model.graph.node)} operators down to {len(result.graph.node)}")
    return result


def _difference(model: ModelProto, result: ModelProto) -> str | None:
    """What forbids to go on with `result` in place of `model`."""
    for role in ("input", "output"):
        given, made = ([value.name for value in getattr(graph, role)] for graph in (model.graph, result.graph))
        if given != made:
            return f"it changed the {role}s of the network"
    before, after = tensor_shapes(model), tensor_shapes(result)
    for name in given:
        if (sizes := sizes_of(before, name)) != (others := sizes_of(after, name)) and sizes and others:
            return f"it changed the sizes of {shown(name)}"
    brought = operator_types(result) - operator_types(model) - BROUGHT
    return f"it brought in {', '.join(sorted(brought))}" if brought else None
