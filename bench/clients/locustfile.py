"""Locust for bench/load.ts: users without think time who send a request that was serialized once. Host, file and requests by environment."""

import json
import os
import resource
import time

import grpc
import grpc.experimental.gevent
from locust import User, constant, events, task

grpc.experimental.gevent.init_gevent()

METHOD = "/inference.GRPCInferenceService/ModelInfer"
REQUESTS = int(os.environ["BENCH_REQUESTS"])
WARMUP = 1000
CONNECTIONS = 4
with open(os.environ["BENCH_PAYLOAD"], "rb") as source:
    PAYLOAD = source.read()
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
CALLS = [
    grpc.insecure_channel(os.environ["BENCH_ADDRESS"], OPTIONS).unary_unary(METHOD) for _ in range(CONNECTIONS)
]
STATE = {"count": 0, "times": os.times(), "started": 0.0}


class Sender(User):
    wait_time = constant(0)

    @task
    def infer(self):
        started = time.perf_counter()
        error = None
        try:
            CALLS[STATE["count"] % CONNECTIONS](PAYLOAD, timeout=30)
        except grpc.RpcError as failure:
            error = failure
        events.request.fire(
            request_type="grpc",
            name="ModelInfer",
            response_time=1000 * (time.perf_counter() - started),
            response_length=0,
            exception=error,
            context={},
        )
        self.count()

    def count(self):
        STATE["count"] += 1
        if STATE["count"] == WARMUP:
            STATE["times"], STATE["started"] = os.times(), time.monotonic()
        if STATE["count"] == WARMUP + REQUESTS:
            before, after, elapsed = STATE["times"], os.times(), time.monotonic() - STATE["started"]
            system = after.system - before.system
            cpu = after.user - before.user + system
            print(
                json.dumps(
                    {
                        "cpuMsPerRequest": 1000 * cpu / REQUESTS,
                        "systemMsPerRequest": 1000 * system / REQUESTS,
                        "rps": REQUESTS / elapsed,
                        "latenessP99Ms": None,
                        "peakRssMb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
                    }
                ),
                flush=True,
            )
            # Locust waits for gevent and gRPC to agree on the end, which they may never do.
            os._exit(0)
