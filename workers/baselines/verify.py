"""Does a compiled network compute what the reference computes?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.networks.tolerance import SINGLE, Tolerance

Outputs = Mapping[str, NDArray[Any]]
EACH_SINGLE: Mapping[str, Tolerance] = MappingProxyType({})

PART, FEW, LOW, LEAST = 30.0, 0.01, 0.1, 1e-5
"""What is small in an output may be far from the reference within a share of the largest value: scores beside pixels, numbers
beside a mask of -1e9. So at most a hundredth of the elements differ by over 30 times that share, of themselves and the tenth
that is smallest, or 1e-5: ONNX Runtime's Sigmoid is a quotient and a half, off by 1e-7 whatever comes out."""
COLUMN, BESIDE = 100, 1e-3
"""The same of every slice of as many elements, as one score beside fourteen coordinates is, but of elements under this share of
the largest value no closer than of that: beside it a sum that cancels out is rounding."""
COARSE, SOME = 0.5, 0.1
"""Behind numbers of 8 or 16 bits what is small differs more: by no more than half of itself and the tenth that is smallest, but
in a tenth of the elements. What is another number altogether, as scores that are zero or another place's, is so in most."""
ELEMENTS = 8
"""Fewer span no steps to tell right from wrong by: how large they are says that."""
HALFWAY = 0.5
"""Of a quantisation step: nearer to the reference than this is the reference's own step."""
NEAR, MOVED, LAST = 4, 0.2, 0.01
"""Places that a row may be from its own where rows are in the order of their scores, the share of them that may be in another,
and of the last ones, one at least, that are not looked at: what is last but for a rounding is not there."""
FLOOR = 1e-30
"""Probabilities below are the same: float32 holds those down to 1e-38, the last of them coarsely, float16 to 6e-5."""
APART, MOST = 1.25, 0.95
"""Where two ways of computing a quantised network part, a third may be further from either than these are from each other, and
some of its elements are the same: of a U-Net's outputs 64 % were up to 7 steps apart, 74 and 73 % of ours 7 and 9 from them."""
TAIL = 8.0
"""Of elements in which two references are further apart than is allowed otherwise a third may have so many times as many, and
three standard deviations of what is left to chance: one element that flipped must not let all others differ by as much."""
OTHERS = (
    "operator by operator, as ONNX defines it: what ONNX Runtime puts together is further off",
    "where what lies halfway between two steps is rounded to the other",
)
PARTED = "ONNX Runtime parts by nearly as much from itself, operator by operator or with other roundings"
MASK, LOWEST, ALIKE = 1e30, -1e4, 0.01
"""Numbers as large, or of half of what their type holds, stand for infinity: attention masks are float32's lowest number. So do
those from -1e4 down that are alike to a hundredth where all others are a hundredth of them: moves that are not allowed."""


@dataclass(frozen=True)
class OutputVerdict:
    """One output: largest difference, largest absolute reference, and why it failed (empty when it passed).

    `steps` is the largest difference in quantisation steps, None where the output has none; `off` the share of elements
    that are one or more off, or labels that are others; `beyond` that of numbers that are further off than any may be.
    """

    name: str
    passed: bool
    difference: float | None
    scale: float | None
    reason: str = ""
    off: float | None = None
    tolerance: Tolerance = SINGLE
    steps: float | None = None
    beyond: float = 0.0

    @property
    def sentence(self) -> str:
        """How far it is from the reference, and how far it may be."""
        if self.difference is None or self.scale is None:
            return f"{self.name}: {self.reason}"
        if self.steps is not None and self.off is not None:
            found = f"at most {self.steps:.2g} steps off, {100 * self.off:.2g} % of it"
            return f"{self.name}: {found} (allowed: {self.tolerance})"
        if self.off is not None:
            return f"{self.name}: another label in {100 * self.off:.2g} % of it (allowed: {self.tolerance})"
        share = self.difference / self.scale if self.scale else self.difference
        return f"{self.name}: at most {100 * share:.2g} % of its largest value off (allowed: {self.tolerance})"


@dataclass(frozen=True)
class Verdict:
    """Passed only when there are outputs and every one passed. A `note` says what it cannot tell."""

    outputs: tuple[OutputVerdict, ...]
    note: str = ""

    @property
    def passed(self) -> bool:
        return bool(self.outputs) and all(output.passed for output in self.outputs)

    @property
    def reason(self) -> str:
        """Why the first failed output failed, or nothing."""
        if not self.outputs:
            return "there are no outputs to compare"
        return next((f"{output.name}: {output.reason}" for output in self.outputs if not output.passed), "")

    @property
    def sentence(self) -> str:
        """How far the outputs are from the reference, and how far they may be."""
        return "; ".join([*(output.sentence for output in self.outputs), *filter(None, [self.note])])

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary with the figures and the tolerance of every output."""
        return {
            "outputs": [asdict(output) for output in self.outputs],
            "sentence": self.sentence,
            "passed": self.passed,
            "reason": self.reason,
        }


def compare(outputs: Outputs, reference: Outputs, tolerances: Mapping[str, Tolerance] = EACH_SINGLE) -> Verdict:
    """Every output of the reference must be there, of the same type and shape, and differ by no more than its tolerance
    allows (that of float32 unless given). Where the reference is masked, by infinity or a number for it, each element must
    be the same: a mask is no measure for the others."""
    verdicts = [_one(name, outputs.get(name), reference[name], tolerances.get(name, SINGLE)) for name in reference]
    verdicts += [
        OutputVerdict(name, False, None, None, "the reference has no such output")
        for name in outputs
        if name not in reference
    ]
    return Verdict(tuple(verdicts))


def compare_any(
    outputs: Outputs, reference: Outputs, others: Sequence[Outputs], tolerances: Mapping[str, Tolerance]
) -> Verdict:
    """The same where `others` are as good as the reference, those of OTHERS."""
    verdict = compare(outputs, reference, tolerances)
    if not verdict.passed:
        for other, note in zip(others, OTHERS, strict=False):
            if (found := compare(outputs, other, tolerances)).passed:
                return replace(found, note=note)
    return verdict


def parted(
    outputs: Outputs, reference: Outputs, references: Sequence[Sequence[Outputs]], tolerances: Mapping[str, Tolerance]
) -> Verdict:
    """The same where of some inputs `references`, a first one and others as good, are further from each other than the
    tolerances allow: so may the outputs be of any inputs."""
    wider, tails = dict(tolerances), dict.fromkeys(reference, 0.0)
    for first, *others in references:
        for other in others:
            for one in compare(other, first, tolerances).outputs:
                wider[one.name] = _widened(one, wider.get(one.name, SINGLE))
                tails[one.name] = max(tails.get(one.name, 0.0), one.beyond)
    by_themselves = {one.name: one.beyond for one in compare(outputs, reference, tolerances).outputs}
    found = [
        _short_tail(one, by_themselves[one.name], tails[one.name], reference[one.name].size) if one.passed else one
        for one in compare(outputs, reference, wider).outputs
    ]
    return Verdict(tuple(found), PARTED)


def _short_tail(found: OutputVerdict, beyond: float, theirs: float, count: int) -> OutputVerdict:
    likely = max(theirs, 1 / max(1, count))  # one by chance
    if beyond <= TAIL * likely + 3 * math.sqrt(likely / max(1, count)):
        return found
    reason = (
        f"{100 * beyond:.3g} % of it is further off than the references are from each other in {100 * theirs:.3g} %"
    )
    return replace(found, passed=False, reason=reason)


def _widened(apart: OutputVerdict, tolerance: Tolerance) -> Tolerance:
    """By how far two references are from each other in an output."""
    if apart.passed or apart.difference is None:
        return tolerance
    relative = apart.difference / apart.scale if apart.scale else 0.0
    share = min(MOST, APART * (apart.off or 0.0))
    return tolerance.at_least(APART * relative, APART * (apart.steps or 0.0), share)


def _one(name: str, found: NDArray[Any] | None, wanted: NDArray[Any], tolerance: Tolerance) -> OutputVerdict:
    def failed(reason: str) -> OutputVerdict:
        return OutputVerdict(name, False, None, None, reason, None, tolerance)

    if found is None:
        return failed("this output is missing")
    if found.shape != wanted.shape:
        return failed(f"its shape is {found.shape}, the reference has {wanted.shape}")
    if found.dtype != wanted.dtype:
        return failed(f"its numbers are {found.dtype}, the reference has {wanted.dtype}")
    if tolerance.ranked is not None:
        found = _in_rank(found, wanted, tolerance.ranked)
    if tolerance.labels:
        return _labels(name, found, wanted, tolerance)
    y, ref = (np.asarray(a, np.float64) for a in (found, wanted))
    plain = np.isfinite(y) & ~_masked(ref, wanted.dtype)
    if reason := _odd(y[~plain], ref[~plain], plain.size, tolerance.relative):
        return failed(reason)
    if tolerance.step and plain.any():
        sizes = np.broadcast_to(tolerance.sizes(ref.shape), ref.shape)[plain]
        return _steps(name, y[plain], ref[plain], sizes, tolerance, wanted.dtype)
    difference, scale = _figures(y[plain], ref[plain])
    reason = _excess(difference, scale, tolerance) or _parts(y[plain], ref[plain], tolerance)
    if not reason and tolerance.relative <= SINGLE.relative:
        reason = _slices(np.where(plain, y, 0.0), np.where(plain, ref, 0.0), tolerance.relative)
    beyond = _share(np.abs(y[plain] - ref[plain]) > tolerance.relative * scale)
    return OutputVerdict(name, not reason, difference, scale, reason, None, tolerance, beyond=beyond)


def _in_rank(found: NDArray[Any], wanted: NDArray[Any], axis: int) -> NDArray[Any]:
    """`found` with each row from the place, of those about its own, where it is most like the reference's, and the last ones as
    the reference's; as it is where too many rows are in other places."""
    moved, count = np.moveaxis(found, axis, 0), found.shape[axis]
    rows, theirs = moved.reshape(count, -1), np.moveaxis(wanted, axis, 0).reshape(count, -1)
    y, ref = (np.nan_to_num(np.asarray(array, np.float64)) for array in (rows, theirs))
    places = np.arange(count)
    off, best = np.full(count, np.inf), places.copy()
    for distance in sorted(range(-NEAR, NEAR + 1), key=abs):
        there = np.clip(places + distance, 0, count - 1)
        apart = np.abs(y[there] - ref).max(axis=1, initial=0.0)
        best, off = np.where(apart < off, there, best), np.minimum(apart, off)
    if np.mean(best != places) > MOVED:
        return found
    taken, last = rows[best], count - max(1, int(LAST * count))
    taken[last:] = theirs[last:]
    return np.moveaxis(taken.reshape(moved.shape), 0, axis)


def _masked(ref: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    """Where numbers that were kept in this type stand for infinity."""
    most = min(MASK, float(np.finfo(dtype).max) / 2) if dtype.kind == "f" else MASK
    masked: NDArray[np.bool_] = ~(np.abs(ref) < most)
    lowest = float(ref.min(initial=0.0, where=~masked))
    lowered = ref <= (1 - ALIKE) * lowest
    others = ~(masked | lowered)
    if lowest <= LOWEST and others.any() and np.abs(ref).max(initial=0.0, where=others) <= -ALIKE * lowest:
        masked |= lowered
    return masked


def _odd(y: NDArray[np.float64], ref: NDArray[np.float64], size: int, relative: float) -> str:
    """What is wrong with the elements, of `size`, that are not finite or masked; nothing where they are the same, masks to
    within a `relative` part of themselves."""
    others = np.count_nonzero(~np.isclose(y, ref, relative, 0.0, equal_nan=True))
    if others:
        return f"{others} of its values, or of the reference's, are not finite or a mask, and not the same"
    nothing = len(ref) == size > 0 and not np.isfinite(ref).any()
    return "none of its values is finite: there is nothing to compare" if nothing else ""


def _steps(
    name: str,
    y: NDArray[np.float64],
    ref: NDArray[np.float64],
    sizes: NDArray[np.float64],
    tolerance: Tolerance,
    kept: np.dtype[Any],
) -> OutputVerdict:
    """Numbers, or their logarithms, that are quantisation steps of these `sizes` apart; `kept` is how the outputs were
    stored."""
    reason = ""
    difference, scale = _figures(y, ref)
    if tolerance.logarithms:
        reason = _excess(difference, scale, tolerance)
        floor = max(FLOOR, 16 * float(np.finfo(kept).tiny))
        y, ref = (np.log(np.maximum(a, floor)) for a in (y, ref))
    span = float(np.ptp(ref / sizes))
    if ref.size < ELEMENTS and not tolerance.logarithms:  # of which the size says nothing
        span = max(span, float(np.abs(ref / sizes).max()))
    if span <= 2 * tolerance.steps:
        reason = (
            f"the reference spans {span:.3g} quantisation steps, too few to tell right from wrong: "
            "leave the last operator (a Softmax?) out of the quantisation"
        )
        return OutputVerdict(name, False, None, None, reason, None, tolerance)
    in_steps = np.abs(y - ref) / sizes
    steps, off = float(in_steps.max()), float(np.mean(in_steps > HALFWAY))
    reason = reason or _steps_excess(steps, off, ref.size, tolerance)
    beyond = _share(in_steps > tolerance.steps + HALFWAY)
    return OutputVerdict(name, not reason, difference, scale, reason, off, tolerance, steps, beyond)


def _labels(name: str, found: NDArray[Any], wanted: NDArray[Any], tolerance: Tolerance) -> OutputVerdict:
    """Integers and truth values: the same or not. Those that stand for measurements, where they span more than a few steps, may
    be that many off."""
    y, ref = (np.asarray(a, np.float64) for a in (found, wanted))
    near = tolerance.steps if ref.size and np.ptp(ref) > 2 * tolerance.steps else 0
    off = float(np.mean(np.abs(y - ref) > near)) if wanted.size else 0.0
    reason = ""
    if off > tolerance.share:
        reason = f"{100 * off:.3g} % of it is another label where {100 * tolerance.share:g} % may be"
    difference, scale = _figures(y, ref)
    return OutputVerdict(name, not reason, difference, scale, reason, off, tolerance)


def _share(there: NDArray[np.bool_]) -> float:
    return float(np.mean(there)) if there.size else 0.0


def _figures(y: NDArray[np.float64], ref: NDArray[np.float64]) -> tuple[float, float]:
    """The largest difference and the largest absolute reference."""
    return float(np.abs(y - ref).max(initial=0.0)), float(np.abs(ref).max(initial=0.0))


def _excess(difference: float, scale: float, tolerance: Tolerance) -> str:
    """What is more than the tolerance allows; nothing where all is within."""
    allowed = tolerance.relative * scale
    return "" if difference <= allowed else f"it differs by {difference:.3g} where {allowed:.3g} is allowed"


def _parts(y: NDArray[np.float64], ref: NDArray[np.float64], tolerance: Tolerance) -> str:
    """The same of the smaller part of an output, more coarsely where it is not computed in float32."""
    sizes = np.abs(ref)
    if not sizes.any():
        return ""
    exact = tolerance.relative <= SINGLE.relative
    relative, few = (PART * tolerance.relative, FEW) if exact else (COARSE, SOME)
    least = max(LEAST, float(np.quantile(sizes[sizes > 0], LOW)))
    off = float(np.mean(np.abs(y - ref) > relative * (sizes + least)))
    if off <= few:
        return ""
    return f"{100 * off:.3g} % of its elements differ by over {100 * relative:.3g} % of what they are"


def _slices(y: NDArray[np.float64], ref: NDArray[np.float64], relative: float) -> str:
    """The same of each slice along each axis, of which the smallest tenth may be far under the whole's."""
    scale = float(np.abs(ref).max(initial=0.0))
    for axis, count in enumerate(ref.shape):
        if count < 2 or ref.size < COLUMN * count:
            continue
        theirs, ours = (np.moveaxis(array, axis, 0).reshape(count, -1) for array in (ref, y))
        sizes = np.abs(theirs)
        least = np.maximum(np.quantile(sizes, LOW, axis=1, keepdims=True), max(LEAST, BESIDE * scale))
        off = np.mean(np.abs(ours - theirs) > PART * relative * (sizes + least), axis=1)
        if (most := float(off.max())) > FEW:
            where = f"at {int(off.argmax())} of axis {axis} {100 * most:.3g} %"
            return f"{where} of its elements differ by over {100 * PART * relative:.3g} % of what they are"
    return ""


def _steps_excess(steps: float, off: float, count: int, tolerance: Tolerance) -> str:
    """The same of an output of `count` elements that has quantisation steps. Of few more may be off by chance."""
    if steps > tolerance.steps + HALFWAY:
        return f"it differs by {steps:.3g} quantisation steps where {tolerance.steps} are allowed"
    share = tolerance.share
    if off > share + (2 * math.sqrt(share * (1 - share) / count) if count < ELEMENTS else 0.0):
        return f"{100 * off:.3g} % of its elements are a quantisation step off where {100 * tolerance.share:g} % may be"
    return ""
