#!/usr/bin/env bash
# The measurements behind docs/evidence/h200, on a GPU machine with 16 cores: b/start.sh b/measure.sh OUT PART...
# Parts: bare (the model without a server), path (from untuned to tuned, SLO 100 ms), strict (the winner at an SLO of 20 ms), explore (the sweep looks for
# the best configuration itself), grid (every configuration of variants-grid.yaml: the truth that explore is compared with).
# A part that was interrupted goes on where it stopped. Server and load workers are on cores of their own.
set -euo pipefail
out=$(realpath -m "$1")
shift
cd "$BUNDLE"
mkdir -p "$out"
{
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader
  python3 -c 'import torch, torchvision; print("torch", torch.__version__, "torchvision", torchvision.__version__)'
  echo "node $(node --version)"
  lscpu | grep "Model name"
} >"$out/versions.txt"

tune() { # tune NAME OPTION...
  local name=$1 resume=()
  shift
  [ ! -e "$out/$name/points.jsonl" ] || resume=(--resume)
  taskset -c "${LOAD_CPUS:-10-15}" node app/tune.js --triton 127.0.0.1:8001 --metrics http://127.0.0.1:8002/metrics \
    --workers 3 --max-rate 20000 --no-accuracy --out "$out/$name" "${resume[@]}" "$@" >"$out/$name.log" 2>&1 || echo "$name: exit $?"
  tail -n 25 "$out/$name.log"
}

for part in "$@"; do
  case $part in
    bare) python3 bare_throughput.py "$out/bare.json" ;;
    path) tune path --variants-file variants-path.yaml ;;
    strict) tune strict --variants-file variants-strict.yaml --slo p95=20ms ;;
    explore) tune explore --variants-file variants-tuned.yaml --explore 2 ;;
    grid) tune grid --variants-file variants-grid.yaml ;;
    *)
      echo "unknown part $part: bare, path, strict, explore or grid" >&2
      exit 2
      ;;
  esac
done
