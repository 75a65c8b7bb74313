#!/usr/bin/env bash
# Unpacks the bundle beside itself, checks every file, and starts Triton with the example's models on loopback.
# Usage: start.sh [COMMAND...]: starts the server, runs COMMAND with the bundle's Node as `node` in front of PATH, stops the server, and
# ends with COMMAND's exit code. Without a command it serves until it is stopped. `start.sh --unpack` only unpacks and checks.
# A server that ends by itself, or is silent for SILENT_S seconds (30), is started again, MOST_RESTARTS times (5) in all; then COMMAND is
# stopped, and the exit code is 3.
# Environment: HTTP_PORT, GRPC_PORT, METRICS_PORT (8000, 8001, 8002); SERVER_CPUS, LOAD_CPUS ("0-9", "10-15"; by default five of eight
# cores are the server's, on machines with at least eight); SERVER_LOG (triton.log beside this file; every start has a log of its own,
# triton.log, triton.log.2, triton.log.3 and so on).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$here/wait.sh"
code=0
die() {
  echo "start.sh: $*" >&2
  exit 2
}
need() {
  for tool in "$@"; do command -v "$tool" >/dev/null || die "$tool is needed: install it"; done
}
need python3
if [ ! -e "$here/unpacked" ]; then
  need tar xz sha256sum
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

server=$here/triton/pytriton/tritonserver
if [ ! -e "$here/linked" ]; then
  mkdir -p "$here/bin" "$here/backends/python"
  ln -sf "$here/node" "$here/bin/node"
  for file in "$server"/backends/python/*; do ln -sf "$file" "$here/backends/python/"; done
  # A link, not a copy: the stub finds its libraries relative to its real place.
  ln -sf "$server/python_backend_stubs/$PYTHON_VERSION/triton_python_backend_stub" "$here/backends/python/"
  touch "$here/linked"
fi
[ "${1:-}" != --unpack ] || exit 0
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

logs=${SERVER_LOG:-$here/triton.log}
pin=()
[ -z "$SERVER_CPUS" ] || pin=(taskset -c "$SERVER_CPUS")
most=${MOST_RESTARTS:-5}
state=$(mktemp -d)

# The log of the next start.
free_log() {
  local name=$logs n=1
  while [ -e "$name" ]; do name=$logs.$((n += 1)); done
  echo "$name"
}

# Kills a server that served and then is silent: one that crashed can hang in its own handler of the crash.
end_when_silent() { # end_when_silent PID
  local since=$SECONDS
  # Not more often: the look is work, too.
  while sleep 5 >/dev/null 2>&1 && kill -0 "$1" 2>/dev/null; do
    if is_live || [ ! -e "$state/served" ]; then since=$SECONDS; fi
    [ $((SECONDS - since)) -ge "${SILENT_S:-30}" ] || continue
    echo "start.sh: the server has not answered for $((SECONDS - since)) s: it is killed" >&2
    kill -KILL "$1" 2>/dev/null || true
    return 0
  done
}

# Serves until it gets SIGTERM; what it tells the script is in $state: the log's name (log), that it gave up (given-up).
keep_serving() {
  local triton='' watcher='' stopping='' restarts=0 log
  trap 'stopping=1; [ -z "$triton" ] || kill "$triton" 2>/dev/null' TERM
  trap - EXIT INT
  while [ -z "$stopping" ]; do
    log=$(free_log)
    echo "$log" >"$state/log"
    "${pin[@]}" "$server/bin/tritonserver" --backend-directory="$here/backends" --model-repository="$here/repository" \
      --model-control-mode=explicit --http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 \
      --http-port="$HTTP_PORT" --grpc-port="$GRPC_PORT" --metrics-port="$METRICS_PORT" \
      --metrics-interval-ms=500 --exit-timeout-secs=5 >"$log" 2>&1 &
    triton=$!
    [ -z "$stopping" ] || kill "$triton" 2>/dev/null || true
    end_when_silent "$triton" &
    watcher=$!
    wait_for "$triton"
    kill "$watcher" 2>/dev/null || true
    [ -z "$stopping" ] || return 0
    # One that never answered would not do so the next time.
    [ -e "$state/served" ] || return 0
    {
      echo "start.sh: the server ended with exit code $code; the last lines of $log:"
      tail -n 15 "$log"
    } >&2
    if [ "$restarts" -ge "$most" ]; then
      touch "$state/given-up"
      kill -TERM $$
      return 0
    fi
    restarts=$((restarts + 1))
    echo "start.sh: it is started again ($restarts of at most $most times)" >&2
    # What it leaves behind, its stub processes and its ports, needs a moment to go.
    sleep 1
  done
}
keep_serving &
keeper=$!
command=
# The server outlives the command, which may still want to say something to it.
trap '[ -z "$command" ] || wait_for "$command"; kill "$keeper" 2>/dev/null || true; wait_for "$keeper"; rm -rf "$state"' EXIT
given_up() {
  [ -e "$state/given-up" ] || return 1
  echo "start.sh: the server ended $((most + 1)) times and is not started again: its logs are $logs and $logs.*" >&2
}
# shellcheck disable=SC2317
on_signal() {
  if [ -n "$command" ]; then
    kill -TERM "$command" 2>/dev/null || true
  elif given_up; then
    exit 3
  else
    exit "$1"
  fi
}
trap 'on_signal 143' TERM
# What runs in the background of a script does not hear Ctrl-C.
trap 'on_signal 130' INT
for attempt in $(seq 120); do
  is_live && break
  log=$(cat "$state/log" 2>/dev/null || echo "$logs")
  if ! kill -0 "$keeper" 2>/dev/null; then
    tail -n 40 "$log" >&2
    die "the server ended at its start; its whole log is $log"
  fi
  [ "$attempt" -lt 120 ] || die "the server does not answer after a minute; its log is $log"
  sleep 0.5
done
touch "$state/served"
if [ $# -eq 0 ]; then
  echo "serving at 127.0.0.1:$GRPC_PORT (gRPC), metrics http://127.0.0.1:$METRICS_PORT/metrics; Ctrl-C ends it"
  wait_for "$keeper"
  exit "$code"
fi
"$@" &
command=$!
wait_for "$command"
command=
if given_up; then exit 3; fi
exit "$code"
