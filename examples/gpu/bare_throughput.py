"""Images a second that the bare model passes on this GPU, without a server: the limit that serving is compared with.

Usage: python3 bare_throughput.py OUT.json  (needs torch, torchvision and a CUDA device)
"""

import json
import os
import sys
import time
import types

# model.py needs the server's module only when it serves.
sys.modules["triton_python_backend_utils"] = types.SimpleNamespace()
from model import GRAPH_SIZES, GraphRunner, build_network  # noqa: E402

import torch  # noqa: E402

SECONDS = 1.0


def images_per_second(run, batch):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    started = time.perf_counter()
    executions = 0
    while time.perf_counter() - started < SECONDS:
        for _ in range(10):
            run()
        torch.cuda.synchronize()
        executions += 10
    return executions * batch / (time.perf_counter() - started)


def write(rows, complete):
    """After every row, so that a run that is cut off leaves what it has."""
    gpu = torch.cuda.get_device_name(0)
    with open(f"{sys.argv[1]}.new", "w", encoding="utf-8") as out:
        json.dump({"gpu": gpu, "torch": torch.__version__, "complete": complete, "rows": rows}, out, indent=1)
    os.replace(f"{sys.argv[1]}.new", sys.argv[1])


def main():
    torch.set_num_threads(1)
    device = torch.device("cuda", 0)
    rows = []
    for precision in ("fp32", "tf32", "fp16"):
        network = build_network(precision, device)
        runner = GraphRunner(network, 64, torch.uint8, device)
        for batch in (1, 8, 32, 64):
            assert batch in GRAPH_SIZES
            graph = runner.graphs[batch][0]

            def replay():
                with torch.cuda.stream(runner.stream):
                    graph.replay()

            parts = [torch.zeros((batch, 224, 224, 3), dtype=torch.uint8)]
            rows.append(
                {
                    "precision": precision,
                    "batch": batch,
                    "graphImagesPerS": round(images_per_second(replay, batch)),
                    "withCopiesImagesPerS": round(images_per_second(lambda: runner.run(parts), batch)),
                }
            )
            print(rows[-1], flush=True)
            write(rows, False)
        del runner, network
        torch.cuda.empty_cache()
    write(rows, True)


main()
