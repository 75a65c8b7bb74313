#!/usr/bin/env bash
# Unpacks the bundle beside itself, checks every file, and starts Triton with the example's models on loopback.
# Usage: start.sh [COMMAND...]: starts the server, runs COMMAND with the bundle's Node as `node` in front of PATH, stops the server.
# Without a command it serves until it is stopped. SERVER_CPUS="0-9" pins the server; the command chooses its own cores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -e "$here/unpacked" ]; then
  tar -xJf "$here/payload.tar.xz" -C "$here"
  (cd "$here" && sha256sum --quiet -c SHA256SUMS)
  touch "$here/unpacked"
fi
mkdir -p "$here/bin" "$here/backends/python"
ln -sf "$here/node" "$here/bin/node"
server=$here/triton/pytriton/tritonserver
for file in "$server"/backends/python/*; do ln -sf "$file" "$here/backends/python/"; done
# A link, not a copy: the stub finds its libraries relative to its real place.
ln -sf "$server/python_backend_stubs/3.12/triton_python_backend_stub" "$here/backends/python/"
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
PATH="$here/bin:$(dirname "$(command -v python3)"):$PATH"
export PATH PYTHONPATH="$site:$here/backends/python"
export BUNDLE="$here"

pin=()
[ -z "${SERVER_CPUS:-}" ] || pin=(taskset -c "$SERVER_CPUS")
"${pin[@]}" "$server/bin/tritonserver" --backend-directory="$here/backends" --model-repository="$here/repository" \
  --model-control-mode=explicit --http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 \
  --http-port="${HTTP_PORT:-8000}" --grpc-port="${GRPC_PORT:-8001}" --metrics-port="${METRICS_PORT:-8002}" \
  --metrics-interval-ms=500 --exit-timeout-secs=5 \
  >"${SERVER_LOG:-$here/triton.log}" 2>&1 &
triton=$!
trap 'kill "$triton" 2>/dev/null; wait "$triton" 2>/dev/null || true' EXIT
for _ in $(seq 120); do
  kill -0 "$triton" 2>/dev/null || { cat "${SERVER_LOG:-$here/triton.log}" >&2; exit 1; }
  if python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:${HTTP_PORT:-8000}/v2/health/live', timeout=1)" 2>/dev/null; then
    break
  fi
  sleep 0.5
done
if [ $# -eq 0 ]; then wait "$triton"; else "$@"; fi
