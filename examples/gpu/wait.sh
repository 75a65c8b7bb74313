#!/usr/bin/env bash
# What start.sh, measure.sh and side-by-side.sh share; sourced.

# wait_for PID: the child's exit code is in $code. A signal to this script does not end the wait.
# shellcheck disable=SC2034
wait_for() {
  # Not one wait all the time: where a signal ends that, bash 5.2 may lose a child's exit, and the next wait never ends.
  while kill -0 "$1" 2>/dev/null; do sleep 0.3; done
  code=0
  wait "$1" || code=$?
}

# is_live: the server answers.
is_live() {
  python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$HTTP_PORT/v2/health/live', timeout=1)" 2>/dev/null
}
