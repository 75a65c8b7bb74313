#!/usr/bin/env bash
# measure.sh on all GPUs of a machine at once: b/side-by-side.sh RESULTS ARCHIVE [PART...]
# Every GPU has a server of its own, an equal share of the cores, and a folder RESULTS/gpu1, gpu2 and so on. divide.ts says who measures
# what; RESULTS/division keeps that. The run is apart from this call: the call starts it, or finds it going and waits, shows what it says,
# and packs RESULTS into ARCHIVE every 20 s, whole or not at all. A run that was cut off goes on where RESULTS is, or where it is empty
# from an earlier ARCHIVE.
# Exit code: 0 all is measured; 4 there is more to do, or the run is still going: the same command goes on; 1 something failed; 2 it cannot
# start.
# Environment: LIMIT_S (seconds after which the run ends in order), WAIT_S (seconds after which this call ends, whatever the run does),
# FROM (archive to go on from; default ARCHIVE), GPUS (default all), HTTP_PORT (8000; GPU 2 has 8010 and so on, with the next two ports for
# gRPC and metrics), and measure.sh's WORKERS, MAX_RATE, TUNE_OPTIONS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$here/wait.sh"
SAVE_EVERY_S=20
# A run that has less time left than this starts nothing, seconds.
LEAST_S=45
# A half whose server or sweep was lost is taken up again this often.
MOST_TRIES=4

die() {
  echo "side-by-side.sh: $*" >&2
  exit 2
}

# The cores of one share of several, as taskset wants them; cores of one socket stay together, and the threads of a core.
cores_of() { # cores_of NUMBER OF
  python3 - "$1" "$2" <<'PY'
import os, sys
number, of = map(int, sys.argv[1:])
def place(cpu):
    def read(name):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/{name}") as file:
                return int(file.read())
        except OSError:
            return 0
    return read("physical_package_id"), read("core_id"), cpu
cores = sorted(os.sched_getaffinity(0), key=place)
share = len(cores) // of
print(",".join(map(str, sorted(cores[share * (number - 1) : share * number] if share else cores))))
PY
}

# One GPU's measurements; its return code is measure.sh's.
half() { # half NUMBER OF
  local number=$1 out=$results/gpu$1 child='' stopping='' limit=() parts left try port
  trap 'stopping=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true' TERM
  read -ra parts <"$out/parts"
  [ ${#parts[@]} -gt 0 ] || return 0
  exec 5> >(exec sed -u "s/^/[gpu$number] /" 8>&-)
  port=$((${HTTP_PORT:-8000} + 10 * (number - 1)))
  for try in $(seq "$MOST_TRIES"); do
    if [ -n "${LIMIT_S:-}" ]; then
      left=$((LIMIT_S - SECONDS))
      [ "$left" -ge "$LEAST_S" ] || return 4
      # The server's start is not measure.sh's.
      limit=("LIMIT_S=$((left - 5))")
    fi
    env "${limit[@]}" CUDA_VISIBLE_DEVICES=$((number - 1)) HTTP_PORT=$port GRPC_PORT=$((port + 1)) METRICS_PORT=$((port + 2)) \
      SERVER_LOG="$out/triton.log" GRIDS="$out" taskset -c "$(cores_of "$number" "$2")" \
      "$here/start.sh" "$here/measure.sh" "$out" "${parts[@]}" 8>&- >&5 2>&1 5>&- &
    child=$!
    [ -z "$stopping" ] || kill -TERM "$child" 2>/dev/null || true
    wait_for "$child"
    child=
    case $code in 0 | 2) return "$code" ;; esac
    [ -z "$stopping" ] || return 4
    echo "gpu$number: ended with $code after $SECONDS s (try $try of $MOST_TRIES)"
    # What comes first may be what the server does not stand.
    parts=("${parts[@]:1}" "${parts[0]}")
    sleep 2
  done
  return "$code"
}

# The run itself. Its exit code is in RESULTS/ended.
drive() {
  local of halves=() number worst=0
  of=$(cut -d' ' -f1 "$results/division")
  trap 'kill -TERM "${halves[@]}" 2>/dev/null || true' TERM
  trap '' INT HUP
  for number in $(seq "$of"); do
    half "$number" "$of" &
    halves+=($!)
  done
  for half in "${halves[@]}"; do
    wait_for "$half"
    # A failure tells more than time that is over.
    case $code in
      0) ;;
      4) [ "$worst" -ne 0 ] || worst=4 ;;
      2) worst=2 ;;
      *) [ "$worst" -eq 2 ] || worst=1 ;;
    esac
  done
  echo "$worst" >"$results/ended"
  echo "all GPUs ended after $SECONDS s"
}

save() {
  local packed=0
  # Before that there is nothing, and perhaps the archive is still read.
  [ -e "$results/division" ] || return 0
  # 1: a file grew meanwhile; its last line is dropped when the run goes on.
  tar -czf "$archive.new" -C "$results" --exclude=.measuring --exclude=.driving --exclude='sweep.lock*' . 2>/dev/null || packed=$?
  if [ "$packed" -le 1 ]; then
    mv -f "$archive.new" "$archive"
  else
    echo "side-by-side.sh: $results could not be packed into $archive" >&2
  fi
}

is_going() { ! flock -n "$results/.driving" true; }

if [ "${1:-}" = --drive ]; then
  results=$2
  drive
  exit 0
fi
[ $# -ge 2 ] || die "usage: side-by-side.sh RESULTS ARCHIVE [bare|path|explore|explore20|grid|grid20 ...]"
for tool in flock setsid taskset tar gzip python3; do command -v "$tool" >/dev/null || die "$tool is needed: install it"; done
results=$(realpath -m "$1")
archive=$(realpath -m "$2")
shift 2
mkdir -p "$results" "$(dirname "$archive")"
touch "$results/run.log"
shown_before=$(wc -l <"$results/run.log")
exec 8>"$results/.driving"
if flock -n 8; then
  from=${FROM:-$archive}
  if [ ! -e "$results/division" ] && [ -e "$from" ]; then
    # The division last: it says that all is there.
    tar -xzf "$from" -C "$results" --exclude=./division || die "$from cannot be unpacked: give another FROM"
    tar -xzf "$from" -C "$results" ./division || die "$from is no archive of this script: give another FROM"
    echo "goes on from $from"
  fi
  there=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
  "$here/start.sh" --unpack 8>&-
  if [ ! -e "$results/division" ]; then
    gpus=${GPUS:-$there}
    [ "$gpus" -gt 0 ] || die "no NVIDIA GPU here: say how many servers there shall be with GPUS"
    [ $# -gt 0 ] || set -- bare path explore explore20 grid grid20
    "$here/bin/node" "$here/app/divide.js" "$results" "$gpus" "$@" 8>&-
  else
    read -r gpus parts <"$results/division"
    [ $# -eq 0 ] || [ "$parts" = "$*" ] || die "$results is for $parts: leave the parts out, or take another folder"
    [ "$gpus" -le "${GPUS:-$there}" ] || die "$results is for $gpus GPUs, here are $there: take such a machine, or another folder"
  fi
  shown_before=$(wc -l <"$results/run.log")
  rm -f "$results/ended"
  # What was done here has taken some of the time.
  [ -z "${LIMIT_S:-}" ] || export LIMIT_S=$((LIMIT_S - SECONDS))
  setsid nohup "$here/side-by-side.sh" --drive "$results" </dev/null >>"$results/run.log" 2>&1 &
  echo $! >"$results/pid"
else
  echo "the run is going already: this call waits for it"
fi
exec 8>&-

tail -n "+$((shown_before + 1))" -f "$results/run.log" 2>/dev/null &
shown=$!
trap 'kill "$shown" 2>/dev/null || true' EXIT
saved=0
while is_going; do
  if [ -n "${WAIT_S:-}" ] && [ "$SECONDS" -ge "$WAIT_S" ]; then
    save
    echo "the run is still going: the same command waits for it; kill $(cat "$results/pid") ends it in order"
    exit 4
  fi
  if [ $((SECONDS - saved)) -ge "$SAVE_EVERY_S" ]; then
    save
    saved=$SECONDS
  fi
  sleep 1
done
save
sleep 1
if [ ! -e "$results/ended" ]; then
  echo "the run was killed: the same command goes on" >&2
  exit 4
fi
code=$(cat "$results/ended")
case $code in
  0) echo "all is measured" ;;
  4) echo "there is more to do: the same command goes on" ;;
  *) echo "side-by-side.sh: something failed; $results/run.log says what" >&2 ;;
esac
exit "$code"
