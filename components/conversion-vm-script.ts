/**
 * Startup script of the conversion VM. It runs at every boot, so starting the stopped VM converts again; what has not
 * changed is skipped by the convert package.
 *
 * Contract with the convert package (a zip in the bucket whose root goes on PYTHONPATH):
 *   python3 -m convert --plan /work/plan.json --artefact NAME --previous /work/previous --output /work/output
 * `--previous` holds the artefact's last `manifest.json`, if there is one. It writes `/work/output/1/...` and
 * `/work/output/manifest.json`, or leaves the folder empty when the artefact's inputs have not changed, and exits with 0.
 * Any other exit code is a failure whose last log lines are the explanation.
 *
 * In the bucket: `artefacts/NAME/` is an artefact, `PREFIX/VARIANT/1/` what Triton reads, `conversion/status.json` says
 * how the last run went and `conversion/logs/` keeps its log.
 */
export interface ConversionScriptInput {
  readonly bucket: string;
  /** Folder of the model repository in the bucket. */
  readonly repositoryPrefix: string;
  /** Container image that converts. */
  readonly image: string;
  /** Object names in the bucket. */
  readonly planObject: string;
  readonly packageObject: string;
  /** Artefacts to make, in order. */
  readonly artefacts: readonly string[];
  /** Which artefact each variant's folder gets a copy of. */
  readonly variants: readonly { readonly name: string; readonly artefact: string }[];
  /** How long to wait for the GPU driver's installation at first boot, seconds. */
  readonly driverWaitS: number;
}

/** What may stand in a name that is put into the script; everything else is refused rather than quoted. */
const safe = /^[A-Za-z0-9][A-Za-z0-9._/@:+-]*$/;

function word(what: string, value: string): string {
  if (!safe.test(value)) {
    throw new Error(
      `${what} "${value}" cannot be used in a startup script: letters, digits and ._/@:+- only.`,
    );
  }
  return value;
}

/**
 * The script as text.
 * @throws Error if a name contains characters that a shell would interpret.
 */
export function conversionScript(input: ConversionScriptInput): string {
  const bucket = word("bucket", input.bucket);
  const prefix = word("repository prefix", input.repositoryPrefix);
  const convertLines = input.artefacts.map((name) => `convert_artefact ${word("artefact", name)}`);
  const publishLines = input.variants.map(
    (variant) => `publish_variant ${word("variant", variant.name)} ${word("artefact", variant.artefact)}`,
  );
  return `#!/bin/bash
set -euo pipefail

readonly BUCKET=gs://${bucket}
readonly REPOSITORY="$BUCKET/${prefix}"
readonly IMAGE=${word("image", input.image)}
readonly WORK=/var/lib/conversion
readonly DRIVER_WAIT_S=${input.driverWaitS}
LOG_NAME="$(date -u +%Y%m%dT%H%M%SZ).log"
readonly LOG_NAME
STEP=starting

mkdir -p "$WORK"
exec > >(tee "$WORK/$LOG_NAME") 2>&1

status() {
  printf '{"state":"%s","step":"%s","log":"conversion/logs/%s","at":"%s"}\\n' \\
    "$1" "$STEP" "$LOG_NAME" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" |
    gcloud storage cp - "$BUCKET/conversion/status.json" --quiet
}

# Success or failure, the log is kept and the machine stops: a forgotten GPU costs money.
finish() {
  local code=$?
  trap - EXIT
  if [ "$code" -eq 0 ]; then status succeeded || true; else status failed || true; fi
  echo "conversion ended with exit code $code at step: $STEP"
  gcloud storage cp "$WORK/$LOG_NAME" "$BUCKET/conversion/logs/$LOG_NAME" --quiet || true
  shutdown -h now
}
trap finish EXIT

step() {
  STEP=$1
  echo "== $STEP"
  status running || echo "the status could not be written"
}

# The metadata server can refuse in the first seconds of a boot.
retry() {
  local attempt
  for attempt in 1 2 3 4 5 6; do
    "$@" && return 0
    echo "attempt $attempt failed: $*"
    sleep $((attempt * 5))
  done
  return 1
}

wait_for_driver() {
  local deadline=$((SECONDS + DRIVER_WAIT_S))
  until nvidia-smi > /dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      echo "no GPU driver after $DRIVER_WAIT_S s: see the driver installation's log above"
      return 1
    fi
    sleep 5
  done
  nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv
}

fetch_inputs() {
  # Joined, because a retried function runs on after a failing line.
  rm -rf "$WORK/package" &&
    gcloud storage cp "$BUCKET/${word("plan object", input.planObject)}" "$WORK/plan.json" --quiet &&
    gcloud storage cp "$BUCKET/${word("package object", input.packageObject)}" "$WORK/package.zip" --quiet &&
    python3 -m zipfile -e "$WORK/package.zip" "$WORK/package"
}

convert_artefact() {
  local name=$1
  step "convert $name"
  rm -rf "$WORK/previous" "$WORK/output"
  mkdir -p "$WORK/previous" "$WORK/output"
  gcloud storage cp "$BUCKET/artefacts/$name/manifest.json" "$WORK/previous/manifest.json" --quiet ||
    echo "$name: no earlier artefact"
  docker run --rm --gpus all --shm-size 1g --volume "$WORK:/work" --env PYTHONPATH=/work/package "$IMAGE" \\
    python3 -m convert --plan /work/plan.json --artefact "$name" --previous /work/previous --output /work/output
  if [ -e "$WORK/output/manifest.json" ]; then
    # The manifest goes last: an artefact without one is unfinished and is made again.
    retry gcloud storage rsync --recursive --delete-unmatched-destination-objects "$WORK/output/1" \\
      "$BUCKET/artefacts/$name/1" --quiet
    retry gcloud storage cp "$WORK/output/manifest.json" "$BUCKET/artefacts/$name/manifest.json" --quiet
  else
    echo "$name: unchanged"
  fi
}

publish_variant() {
  local variant=$1 artefact=$2
  step "publish $variant"
  retry gcloud storage rsync --recursive --delete-unmatched-destination-objects "$BUCKET/artefacts/$artefact/1" \\
    "$REPOSITORY/$variant/1" --quiet
}

step "wait for the GPU driver"
wait_for_driver
step "fetch plan and package"
retry fetch_inputs
step "pull $IMAGE"
retry docker pull "$IMAGE"
${[...convertLines, ...publishLines].join("\n")}
STEP="all done"
`;
}
