#!/usr/bin/env bash
# Unpacks the bundle beside itself, checks every file, and starts Triton with the example's models on loopback.
# Usage: start.sh [COMMAND...]: starts the server, runs COMMAND with the bundle's Node as `node` in front of PATH, stops the server, and
# ends with COMMAND's exit code. Without a command it serves until it is stopped.
# Environment: HTTP_PORT, GRPC_PORT, METRICS_PORT (8000, 8001, 8002); SERVER_CPUS, LOAD_CPUS ("0-9", "10-15"; by default five of eight
# cores are the server's, on machines with at least eight); SERVER_LOG (triton.log beside this file).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() {
  echo "start.sh: $*" >&2
  exit 2
}
for tool in tar xz sha256sum python3; do command -v "$tool" >/dev/null || die "$tool is needed: install it"; done
if [ ! -e "$here/unpacked" ]; then
  tar -xJf "$here/payload.tar.xz" -C "$here"
  (cd "$here" && sha256sum --quiet -c SHA256SUMS) || die "the bundle is damaged: copy it again"
  touch "$here/unpacked"
fi
# What the bundle was made for: PYTHON_VERSION, PYTHON_MODULES.
# shellcheck source=/dev/null
. "$here/bundle.env"
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = "$PYTHON_VERSION" ] || die "python3 is $version, the bundle is for $PYTHON_VERSION: put that one first in PATH"
site=$(python3 - "$PYTHON_MODULES" <<'PY'
import importlib.util, os, sys
for name in sys.argv[1].split():
    found = importlib.util.find_spec(name)
    if found is None:
        sys.exit(f"start.sh: python3 has no module {name}: install it, or put a python3 that has it first in PATH")
    print(os.path.dirname(os.path.dirname(found.origin)))
    break
PY
)

mkdir -p "$here/bin" "$here/backends/python"
ln -sf "$here/node" "$here/bin/node"
server=$here/triton/pytriton/tritonserver
for file in "$server"/backends/python/*; do ln -sf "$file" "$here/backends/python/"; done
# A link, not a copy: the stub finds its libraries relative to its real place.
ln -sf "$server/python_backend_stubs/$PYTHON_VERSION/triton_python_backend_stub" "$here/backends/python/"
PATH="$here/bin:$(dirname "$(command -v python3)"):$PATH"
export PATH PYTHONPATH="$site:$here/backends/python" BUNDLE="$here"
export HTTP_PORT="${HTTP_PORT:-8000}" GRPC_PORT="${GRPC_PORT:-8001}" METRICS_PORT="${METRICS_PORT:-8002}"
python3 - "$HTTP_PORT" "$GRPC_PORT" "$METRICS_PORT" <<'PY' || exit 2
import socket, sys
for port in sys.argv[1:]:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", int(port)))
        except OSError as error:
            sys.exit(f"start.sh: port {port} cannot be used ({error.strerror}): stop the server that has it, or set HTTP_PORT, GRPC_PORT, METRICS_PORT")
PY
if [ -z "${SERVER_CPUS:-}" ] && command -v taskset >/dev/null; then
  split=$(python3 -c 'import os
cores = sorted(os.sched_getaffinity(0)); most = len(cores) * 5 // 8
if len(cores) >= 8: print(",".join(map(str, cores[:most])), ",".join(map(str, cores[most:])))')
  [ -z "$split" ] || read -r SERVER_CPUS LOAD_CPUS <<<"$split"
fi
export SERVER_CPUS="${SERVER_CPUS:-}" LOAD_CPUS="${LOAD_CPUS:-}"

log=${SERVER_LOG:-$here/triton.log}
pin=()
[ -z "$SERVER_CPUS" ] || pin=(taskset -c "$SERVER_CPUS")
"${pin[@]}" "$server/bin/tritonserver" --backend-directory="$here/backends" --model-repository="$here/repository" \
  --model-control-mode=explicit --http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 \
  --http-port="$HTTP_PORT" --grpc-port="$GRPC_PORT" --metrics-port="$METRICS_PORT" \
  --metrics-interval-ms=500 --exit-timeout-secs=5 >"$log" 2>&1 &
triton=$!
command=
# The server outlives the command, which may still want to say something to it.
trap '[ -z "$command" ] || wait "$command" 2>/dev/null || true; kill "$triton" 2>/dev/null; wait "$triton" 2>/dev/null || true' EXIT
trap '[ -z "$command" ] && exit 143; kill -TERM "$command" 2>/dev/null || true' TERM
# From a terminal, Ctrl-C reaches the command as well.
trap '[ -n "$command" ] || exit 130' INT
is_live() {
  python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$HTTP_PORT/v2/health/live', timeout=1)" 2>/dev/null
}
for attempt in $(seq 120); do
  is_live && break
  if ! kill -0 "$triton" 2>/dev/null; then
    tail -n 40 "$log" >&2
    die "the server ended at its start; its whole log is $log"
  fi
  [ "$attempt" -lt 120 ] || die "the server does not answer after a minute; its log is $log"
  sleep 0.5
done
if [ $# -eq 0 ]; then
  echo "serving at 127.0.0.1:$GRPC_PORT (gRPC), metrics http://127.0.0.1:$METRICS_PORT/metrics; Ctrl-C ends it"
  code=0
  wait "$triton" || code=$?
  exit "$code"
fi
"$@" &
command=$!
code=0
# A signal ends the wait, not the command.
wait "$command" || code=$?
while kill -0 "$command" 2>/dev/null; do
  code=0
  wait "$command" || code=$?
done
command=
exit "$code"
