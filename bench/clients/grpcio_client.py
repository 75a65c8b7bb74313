"""Client process of bench/load.ts: Python grpcio with a request that was serialized once. Arguments: host:port, file, requests."""

import json
import os
import resource
import sys
import threading
import time

import grpc

IN_FLIGHT = 32
CONNECTIONS = 4
WARMUP = 1000
METHOD = "/inference.GRPCInferenceService/ModelInfer"


def flat_out(calls, payload, requests):
    """Always IN_FLIGHT requests under way, until all were answered."""
    room = threading.Semaphore(IN_FLIGHT)
    done = threading.Semaphore(0)

    def ended(future):
        if future.code() != grpc.StatusCode.OK:
            print(f"status {future.code()}: {future.details()}", file=sys.stderr)
        room.release()
        done.release()

    for index in range(requests):
        room.acquire()
        calls[index % len(calls)].future(payload, timeout=30).add_done_callback(ended)
    for _ in range(requests):
        done.acquire()


def main():
    address, file, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(file, "rb") as source:
        payload = source.read()
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    channels = [grpc.insecure_channel(address, options) for _ in range(CONNECTIONS)]
    # No serializers: the bytes go out as they are.
    calls = [channel.unary_unary(METHOD) for channel in channels]
    flat_out(calls, payload, WARMUP)
    before, started = os.times(), time.monotonic()
    flat_out(calls, payload, requests)
    after, elapsed = os.times(), time.monotonic() - started
    system = after.system - before.system
    cpu = after.user - before.user + system
    for channel in channels:
        channel.close()
    print(
        json.dumps(
            {
                "cpuMsPerRequest": 1000 * cpu / requests,
                "systemMsPerRequest": 1000 * system / requests,
                "rps": requests / elapsed,
                "latenessP99Ms": None,
                "peakRssMb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
            }
        )
    )


main()
