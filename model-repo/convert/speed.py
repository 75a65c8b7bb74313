"""Stand-alone speed of a model: one caller, one batch after the other, copies included."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .onnx_path.trtexec import Speed

#: Calls before the timed ones, and the fewest that are timed.
CALLS = 10


def measure(
    predict: Callable[[Any], Any],
    pixels: NDArray[Any],
    batch_sizes: Sequence[int],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    calls: int = CALLS,
) -> list[Speed]:
    """Calls the model for `seconds` (at least `calls` times) a batch size, after as many calls that do not count."""
    result = []
    for size in batch_sizes:
        batch = np.resize(pixels, (size, *pixels.shape[1:]))
        for _ in range(calls):
            predict(batch)
        times: list[float] = []
        end = clock() + seconds
        while len(times) < calls or clock() < end:
            start = clock()
            predict(batch)
            times.append(clock() - start)
        p50, p95 = (float(value) * 1000 for value in np.quantile(times, (0.5, 0.95)))
        result.append(Speed(size, size * len(times) / sum(times), p50, p95))
    return result
