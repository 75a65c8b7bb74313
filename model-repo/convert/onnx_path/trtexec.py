"""TensorRT plans through trtexec: command lines, what its output says, and the one function that runs it (GPU only)."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConversionError, disk_full
from ..plan import Artefact

#: Scratch memory that TensorRT may use, MiB.
WORKSPACE_MIB = 4096
#: Places of trtexec in NVIDIA's containers beside PATH.
PROGRAMS = ("trtexec", "/opt/tensorrt/bin/trtexec", "/usr/src/tensorrt/bin/trtexec")

Runner = Callable[[Sequence[str]], tuple[int, str]]


def run_trtexec(arguments: Sequence[str]) -> tuple[int, str]:
    """Runs trtexec and returns its exit code and output, which is also shown (GPU only)."""
    for program in PROGRAMS:
        try:
            process = subprocess.Popen(
                [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
        except FileNotFoundError:
            continue
        lines = []
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        return process.wait(), "".join(lines)
    raise ConversionError(
        "trtexec", f"trtexec is not there (looked for {', '.join(PROGRAMS)})", "Use NVIDIA's tensorrt container"
    )


def tensorrt_version(run: Runner) -> tuple[int, int, int]:
    """Version in trtexec's banner: `[TensorRT v101000]` is 10.10.0, `[TensorRT v8601]` is 8.6.1."""
    _, output = run(["--help"])
    match = re.search(r"TensorRT v(\d+)", output)
    if match is None:
        raise ConversionError("trtexec", "trtexec does not say its version", "Use NVIDIA's tensorrt container")
    number = int(match[1])
    if number < 10_000:
        return number // 1000, number // 100 % 10, number % 100
    return number // 10_000, number // 100 % 100, number % 100


def shape(artefact: Artefact, batch: int) -> str:
    return f"{artefact.input_name}:{batch}x{artefact.height}x{artefact.width}x3"


def build_arguments(artefact: Artefact, onnx_file: Path, plan_file: Path, tensorrt_major: int) -> list[str]:
    """Arguments that build the plan: one profile from batch 1 to the artefact's batch, tuned for that batch.

    TensorRT 10 takes the precision as flags, and for INT8 the Q/DQ nodes give the scales (FP16 for the rest). TensorRT 11
    has no such flags: the types in the graph decide, so the graph must carry them (`half` and `quantise`).
    """
    largest = artefact.built_max_batch_size
    if largest is None:
        raise ConversionError("plan", f"{artefact.name} has no builtMaxBatchSize", "Set it to the largest served batch")
    precision = {"fp32": ["--noTF32"], "fp16": ["--fp16"], "int8": ["--int8", "--fp16"]}.get(artefact.precision)
    if precision is None:
        raise ConversionError(
            "plan",
            f"{artefact.name}: TensorRT has no precision {artefact.precision}",
            "Use fp32, fp16 or int8; the unconverted model is served as onnxruntime_onnx",
        )
    return [
        f"--onnx={onnx_file}",
        f"--saveEngine={plan_file}",
        f"--minShapes={shape(artefact, 1)}",
        f"--optShapes={shape(artefact, largest)}",
        f"--maxShapes={shape(artefact, largest)}",
        f"--memPoolSize=workspace:{WORKSPACE_MIB}M",
        *(precision if tensorrt_major <= 10 else (["--noTF32"] if artefact.precision == "fp32" else [])),
        "--skipInference",
    ]


def bench_arguments(artefact: Artefact, plan_file: Path, batch: int, seconds: int) -> list[str]:
    """Arguments that measure a plan with the copies to and from the GPU, as a server does them."""
    return [
        f"--loadEngine={plan_file}",
        f"--shapes={shape(artefact, batch)}",
        "--warmUp=500",
        f"--duration={seconds}",
        "--percentile=95",
        "--useSpinWait",
    ]


def answer_arguments(artefact: Artefact, plan_file: Path, batch: int, input_file: Path, answer_file: Path) -> list[str]:
    """Arguments that run one batch from a raw file and write the answers as JSON."""
    return [
        f"--loadEngine={plan_file}",
        f"--shapes={shape(artefact, batch)}",
        f"--loadInputs={artefact.input_name}:{input_file}",
        f"--exportOutput={answer_file}",
        *("--iterations=1", "--warmUp=0", "--duration=0"),
    ]


@dataclass(frozen=True)
class Speed:
    """Throughput and latency of one batch size."""

    batch_size: int
    images_per_s: float
    #: From the call to the answer, the batch's.
    latency_p50_ms: float
    latency_p95_ms: float

    def as_json(self) -> dict[str, float | int]:
        return {
            "batchSize": self.batch_size,
            "imagesPerS": round(self.images_per_s, 1),
            "latencyP50Ms": round(self.latency_p50_ms, 3),
            "latencyP95Ms": round(self.latency_p95_ms, 3),
        }


def parse_speed(output: str, batch: int) -> Speed:
    """Reads `Throughput: 123.4 qps` and the `Latency:` line. Raises ConversionError (`trtexec`) if they are missing."""
    rate = re.search(r"Throughput: ([\d.]+) qps", output)
    latency = re.search(r"\bLatency: .*?median = ([\d.]+) ms.*?percentile\(95%\) = ([\d.]+) ms", output)
    if rate is None or latency is None:
        raise ConversionError("trtexec", "trtexec printed no throughput", "See its messages above")
    return Speed(batch, float(rate[1]) * batch, float(latency[1]), float(latency[2]))


def explain_failure(output: str, code: int) -> ConversionError:
    """What stopped trtexec: an operation (with its node), a full disk, the GPU's memory, or the last error line."""
    node = re.search(r"While parsing node number (\d+) \[(\w+)(?: -> \"?([^\"\]]*)\"?)?\]", output)
    missing = re.search(r"(?:No importer registered for op: |could not find plugin:? )\"?(\w+)", output)
    if node is not None or missing is not None:
        op = missing[1] if missing else (node[2] if node else "")
        place = f" (node {node[1]}{f', output {node[3]}' if node[3] else ''})" if node else ""
        return ConversionError(
            "unsupported-op",
            f"TensorRT does not take the operation {op}{place}",
            "Replace the operation, or serve the model with ONNX Runtime (platform onnxruntime_onnx)",
        )
    if os.strerror(errno.ENOSPC) in output:
        return disk_full("trtexec writes the plan")
    if re.search(r"out of memory|OutOfMemory", output, re.IGNORECASE):
        return ConversionError("gpu-memory", "the GPU's memory is full", "Build for a smaller batch size")
    errors = [line.strip() for line in output.splitlines() if "[E]" in line]
    last = errors[-1] if errors else (output.strip().splitlines() or ["no output"])[-1]
    return ConversionError("trtexec", f"trtexec ended with exit code {code}: {last}", "See its messages above")
