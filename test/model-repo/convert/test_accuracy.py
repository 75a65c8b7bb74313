"""Agreement of two models, and answers that are no probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from convert.accuracy import agreement, check_probabilities
from convert.errors import ConversionError


def rows(*values: list[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(values, np.float64)


def test_agreement_by_hand() -> None:
    original = rows([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], [0.1, 0.6, 0.1, 0.1, 0.05, 0.05])
    converted = rows([0.4, 0.3, 0.1, 0.1, 0.05, 0.05], [0.6, 0.1, 0.1, 0.05, 0.05, 0.1])
    result = agreement(original, converted)
    assert result.images == 2
    assert result.top1Agreement == 0.5
    # First image: the same five. Second: {1,0,2,3,4} against {0,1,2,5,3}.
    assert result.top5Agreement == pytest.approx(0.9)
    assert result.maxProbabilityDifference == pytest.approx(0.5)
    assert result.meanProbabilityDifference == pytest.approx(1.3 / 12)


def test_same_answers_agree() -> None:
    answers = np.random.default_rng(0).dirichlet(np.ones(10), 20)
    assert agreement(answers, answers).as_json() == {
        "images": 20,
        "top1Agreement": 1,
        "top5Agreement": 1,
        "maxProbabilityDifference": 0,
        "meanProbabilityDifference": 0,
    }


@pytest.mark.parametrize(
    ("answers", "kind", "message"),
    [
        (rows([0.5, float("nan")], [0.5, 0.5]), "nan", "1 of 2 images with NaN"),
        (rows([0.5, float("inf")]), "nan", "1 of 1 images with NaN or infinite"),
        (rows([3.0, -2.0]), "output", "does not answer with probabilities"),
        (rows([0.5, 0.9]), "output", r"rows add up to 1\.4 \.\. 1\.4"),
        (rows([0.5, 0.25, 0.25]), "output", r"shape \[1, 3\], not \[images, 2\]"),
        (np.array(1.0), "output", r"shape \[\]"),
    ],
)
def test_unusable_answers(answers: np.ndarray[tuple[int, ...], np.dtype[np.float64]], kind: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        check_probabilities(answers, 2, "small")
    assert caught.value.kind == kind


def test_half_precision_rounding_is_no_error() -> None:
    check_probabilities(rows([0.5, 0.495]), 2, "small")
