"""How far a converted model's answers are from the original's, and whether answers are usable at all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ConversionError

Array = NDArray[Any]


@dataclass(frozen=True)
class Agreement:
    """Comparison over a set of images, field names as they stand in the manifest (camelCase)."""

    images: int
    #: Share of images whose most probable class is the original's.
    top1Agreement: float  # noqa: N815
    #: Mean share of the original's five most probable classes that are among the converted model's five.
    top5Agreement: float  # noqa: N815
    #: Largest and mean absolute difference of a probability.
    maxProbabilityDifference: float  # noqa: N815
    meanProbabilityDifference: float  # noqa: N815

    def as_json(self) -> dict[str, float | int]:
        return {key: round(value, 6) for key, value in asdict(self).items()}


def check_probabilities(probabilities: Array, classes: int, what: str) -> None:
    """Raises ConversionError (`output`) unless every row is a finite probability distribution over the classes."""
    if probabilities.ndim != 2 or probabilities.shape[1] != classes:
        raise ConversionError(
            "output",
            f"{what} answers with shape {list(probabilities.shape)}, not [images, {classes}]",
            "Name the tensor that holds one row of class scores an image",
        )
    broken = int(np.count_nonzero(~np.isfinite(probabilities).all(axis=1)))
    if broken:
        raise ConversionError(
            "nan",
            f"{what} answers {broken} of {len(probabilities)} images with NaN or infinite values",
            "Check mean and scale of the model; in FP16 values beyond 65504 overflow: use FP32 or INT8 for this model",
        )
    sums = probabilities.sum(axis=1)
    if probabilities.min() < -1e-3 or np.abs(sums - 1).max() > 0.02:
        raise ConversionError(
            "output",
            f"{what} does not answer with probabilities: rows add up to {sums.min():.3g} .. {sums.max():.3g}",
            "If the tensor holds scores before softmax, set scores to logits in the model's description",
        )


def agreement(original: Array, converted: Array) -> Agreement:
    """Compares probabilities [images, classes] of the two models for the same images."""
    top = min(5, original.shape[1])
    best_original = np.argsort(-original, axis=1, kind="stable")[:, :top]
    best_converted = np.argsort(-converted, axis=1, kind="stable")[:, :top]
    shared = [len(set(a) & set(b)) / top for a, b in zip(best_original.tolist(), best_converted.tolist())]
    difference = np.abs(original.astype(np.float64) - converted.astype(np.float64))
    return Agreement(
        images=len(original),
        top1Agreement=float(np.mean(best_original[:, 0] == best_converted[:, 0])),
        top5Agreement=float(np.mean(shared)),
        maxProbabilityDifference=float(difference.max()),
        meanProbabilityDifference=float(difference.mean()),
    )
