"""Command line of one conversion; README.md states the contract with the conversion VM."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from .errors import ConversionError
from .job import BENCH_SECONDS, Gear
from .plan import Plan, read_plan
from .run import convert, write_failure


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m convert", description="Makes one artefact of a conversion plan.")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json")
    parser.add_argument("--artefact", required=True, help="name of the artefact in the plan")
    parser.add_argument(
        "--output", required=True, type=Path, help="empty folder for 1/ and manifest.json, or failure.json"
    )
    parser.add_argument("--previous", type=Path, help="folder with the artefact's last manifest.json, if there is one")
    parser.add_argument("--downloads", type=Path, help="where downloads are kept (default: beside --output)")
    parser.add_argument("--model", help="fetched copy of the plan's model.source")
    parser.add_argument("--calibration", help="fetched copy of the plan's calibration images")
    parser.add_argument("--held-out", help="fetched copy of the plan's held-out images")
    parser.add_argument(
        "--without-held-out", action="store_true", help="measure no accuracy, although the plan names held-out images"
    )
    parser.add_argument(
        "--bench-seconds", type=float, default=BENCH_SECONDS, help="how long each batch size is measured (default: 5)"
    )
    return parser.parse_args(words)


def _with_copies(plan: Plan, options: argparse.Namespace) -> Plan:
    """The plan, looking at what was fetched for it."""
    calibration = plan.calibration
    held_out = None if options.without_held_out else plan.held_out
    return replace(
        plan,
        model=replace(plan.model, source=options.model) if options.model else plan.model,
        calibration=replace(calibration, source=options.calibration)
        if calibration is not None and options.calibration
        else calibration,
        held_out=replace(held_out, source=options.held_out) if held_out is not None and options.held_out else held_out,
    )


def main(words: list[str]) -> int:
    options = _arguments(words)
    downloads = options.downloads or options.output.parent / "downloads"
    try:
        try:
            plan = _with_copies(read_plan(options.plan), options)
        except ConversionError as error:
            options.output.mkdir(parents=True, exist_ok=True)
            write_failure(options.output, options.artefact, error)
            raise
        outcome = convert(
            plan,
            options.artefact,
            options.previous,
            options.output,
            downloads,
            Gear(bench_seconds=options.bench_seconds),
        )
    except ConversionError as error:
        print(f"convert {options.artefact}: {error}", file=sys.stderr, flush=True)
        return 2
    print(f"{options.artefact}: {outcome}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
