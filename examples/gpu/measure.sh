#!/usr/bin/env bash
# The measurements behind docs/evidence/h200, on a GPU machine with 16 cores: b/start.sh b/measure.sh OUT [PART...]
# Parts, in this order by default: bare (the model without a server), path (from untuned to tuned, SLO 100 ms), explore and explore20 (the
# sweep looks for the best configuration itself, SLO 100 ms and 20 ms), grid and grid20 (every configuration of grids.ts: the truth that
# explore and explore20 are compared with); grid-2 and grid20-2, where side-by-side.sh cut a grid in two.
# Every trial is in OUT before the next one starts. The same command goes on where a run was cut off, by whatever and on whichever machine,
# once OUT is there; finished parts are left out. Exit code 4: there is more to do.
# Environment: LIMIT_S (seconds after which it ends in order), WORKERS (3), MAX_RATE (20000), TUNE_OPTIONS (more options of the tune
# command, for all parts), EXPLORE (configurations that an exploration tries, 3), LOAD_CPUS, GRIDS (folder of the grids' files of variants;
# default the bundle's); ports from start.sh.
set -euo pipefail
# shellcheck source=/dev/null
. "$(dirname "$0")/wait.sh"
if [ $# -lt 1 ] || [ -z "${BUNDLE:-}" ]; then
  echo "usage: start.sh measure.sh OUT [bare|path|explore|explore20|grid|grid20 ...]" >&2
  exit 2
fi
out=$(realpath -m "$1")
shift
parts=("$@")
[ $# -gt 0 ] || parts=(bare path explore explore20 grid grid20)
for part in "${parts[@]}"; do
  case $part in bare | path | explore | explore20 | grid | grid20 | grid-2 | grid20-2) ;; *)
    echo "measure.sh: unknown part $part: bare, path, explore, explore20, grid or grid20" >&2
    exit 2
    ;;
  esac
done
cd "$BUNDLE"
mkdir -p "$out"
exec 9>"$out/.measuring"
if command -v flock >/dev/null && ! flock -n 9; then
  echo "measure.sh: another one writes into $out: wait for its end" >&2
  exit 2
fi

versions=$({
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader || echo "no NVIDIA GPU"
  python3 -c 'import torch, torchvision; print("torch", torch.__version__, "torchvision", torchvision.__version__)' || echo "no torch"
  echo "node $(node --version)"
  lscpu | grep "Model name"
} 2>/dev/null || true)
# A run that goes on elsewhere says so.
[ "$(tail -n "$(wc -l <<<"$versions")" "$out/versions.txt" 2>/dev/null)" = "$versions" ] || printf '%s\n' "$versions" >>"$out/versions.txt"

child=
code=0
stopping=
failed=
unfinished=
# The sweep ends in order and writes what it has.
trap 'stopping=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true' TERM INT
pin=()
[ -z "${LOAD_CPUS:-}" ] || pin=(taskset -c "$LOAD_CPUS")

# run COMMAND...: its exit code is in $code.
run() {
  "$@" 9>&- &
  child=$!
  wait_for "$child"
  child=
}

is_finished() { # is_finished NAME: its sweep came to its end
  python3 - "$out/$1/manifest.json" "$out/$1/result.json" <<'PY'
import json, sys
try:
    manifest, result = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
except (OSError, ValueError):
    sys.exit(1)
sys.exit(manifest["endedAt"] is None or result["endedEarly"] is not None)
PY
}

tune() { # tune NAME OPTION...
  local name=$1 more=() options=()
  shift
  if is_finished "$name"; then
    echo "$name: finished before"
    return
  fi
  [ ! -e "$out/$name/points.jsonl" ] || more=(--resume)
  # The lock of a run that was cut off, perhaps on a machine that is gone; .measuring keeps a second run away.
  rm -rf "$out/$name/sweep.lock" "$out/$name/sweep.lock.takeover"
  if [ -n "${LIMIT_S:-}" ]; then
    # What is being measured then is still finished, and the result written.
    local left=$((LIMIT_S - SECONDS - 20))
    if [ "$left" -lt 10 ]; then
      echo "$name: no time left"
      unfinished=1
      return
    fi
    more+=(--max-minutes "$((left / 60)).$(printf '%02d' $((left % 60 * 100 / 60)))")
  fi
  read -ra options <<<"${TUNE_OPTIONS:-}"
  # The part before may have ended with its server, which start.sh starts again.
  for _ in $(seq 60); do
    if [ -n "$stopping" ] || [ -z "${HTTP_PORT:-}" ] || is_live; then break; fi
    sleep 0.5
  done
  if [ -n "$stopping" ]; then
    unfinished=1
    return
  fi
  run "${pin[@]}" node app/tune.js --triton "127.0.0.1:$GRPC_PORT" --metrics "http://127.0.0.1:$METRICS_PORT/metrics" \
    --workers "${WORKERS:-3}" --max-rate "${MAX_RATE:-20000}" --no-accuracy --out "$out/$name" "${more[@]}" "$@" "${options[@]}" \
    >>"$out/$name.log" 2>&1
  tail -n 25 "$out/$name.log"
  case $code in
    0 | 3 | 5) ;;
    4 | 130 | 143) unfinished=1 ;;
    *)
      echo "measure.sh: $name failed with exit code $code; see $out/$name.log" >&2
      failed=1
      ;;
  esac
}

bare() {
  if python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["complete"])' "$out/bare.json" 2>/dev/null; then
    echo "bare: finished before"
    return
  fi
  run python3 bare_throughput.py "$out/bare.json"
  [ "$code" -eq 0 ] || failed=1
}

for part in "${parts[@]}"; do
  if [ -n "$stopping" ]; then
    unfinished=1
    break
  fi
  case $part in
    bare) bare ;;
    path) tune path --variants-file variants-path.yaml ;;
    explore) tune explore --variants-file variants-tuned.yaml --explore "${EXPLORE:-3}" ;;
    explore20) tune explore20 --variants-file variants-tuned.yaml --slo p95=20ms --explore "${EXPLORE:-3}" ;;
    grid | grid-2) tune "$part" --variants-file "${GRIDS:+$GRIDS/}variants-$part.yaml" ;;
    grid20 | grid20-2) tune "$part" --variants-file "${GRIDS:+$GRIDS/}variants-$part.yaml" --slo p95=20ms ;;
  esac
done
if [ -n "$failed" ]; then exit 1; fi
if [ -n "$unfinished" ]; then
  echo "there is more to do: the same command goes on"
  exit 4
fi
echo "all parts are finished: ${parts[*]}"
