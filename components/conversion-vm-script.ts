/**
 * Startup script of the conversion VM. It runs at every boot, so starting the stopped VM converts again, and a VM that was taken
 * away goes on where it was; what has not changed is skipped by the convert package.
 *
 * Contract with the convert package (a zip in the bucket whose root goes on PYTHONPATH):
 *   python3 -m convert --plan /work/plan.json --artefact NAME --previous /work/previous --output /work/output
 *     --downloads /work/downloads [--model PATH] [--calibration PATH] [--held-out PATH | --without-held-out]
 * `--previous` holds the artefact's last `manifest.json`, if there is one. It writes `/work/output/1/...` and
 * `/work/output/manifest.json`, or leaves the folder empty when the artefact's inputs have not changed, and exits with 0.
 * Any other exit code is a failure that `/work/output/failure.json` explains; the other artefacts are made all the same.
 *
 * In the bucket: `artefacts/NAME/` is an artefact, `PREFIX/VARIANT/1/` what Triton reads, `conversion/status.json` says
 * how the last run went, `conversion/failures/NAME.json` why an artefact failed, and `conversion/logs/` keeps its log.
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
  /** Requirements file of the package to install in the container first; null for none. */
  readonly requirements: string | null;
  /** Address of the model; fetched here when it is gs://, by the package otherwise. Null for the package's default. */
  readonly modelSource: string | null;
  /** gs:// folder of images, or a folder of the bucket. */
  readonly calibrationImages: string;
  readonly heldOutImages: string;
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
  const folder = (what: string, source: string) =>
    source.startsWith("gs://") ? `gs://${word(what, source.slice(5))}` : `$BUCKET/${word(what, source)}`;
  const model = input.modelSource?.startsWith("gs://")
    ? `gs://${word("model source", input.modelSource.slice(5).replace(/\/+$/, ""))}`
    : null;
  const requirements = input.requirements === null ? null : word("requirements", input.requirements);
  const setUpLines = [
    ...(model === null ? [] : [`step "fetch the model ${model}"`, `retry fetch_model "${model}"`]),
    'step "fetch images"',
    `retry fetch_images calibration "${folder("calibration images", input.calibrationImages)}"`,
    `retry fetch_images held-out "${folder("held-out images", input.heldOutImages)}"`,
    'step "pull $IMAGE"',
    'retry docker pull "$IMAGE"',
    ...(requirements === null
      ? []
      : [`step "install ${requirements}"`, `retry install_requirements ${requirements}`]),
  ];
  const convertLines = input.artefacts.map((name) => `convert_or_note ${word("artefact", name)}`);
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
# Names of artefacts that could not be made.
FAILED=()
CONVERT_ARGS=(--downloads /work/downloads)

mkdir -p "$WORK"
exec > >(tee "$WORK/$LOG_NAME") 2>&1

status() {
  local failed=""
  [ "\${#FAILED[@]}" -eq 0 ] || failed=$(printf ',"%s"' "\${FAILED[@]}")
  printf '{"state":"%s","step":"%s","failed":[%s],"log":"conversion/logs/%s","at":"%s"}\\n' \\
    "$1" "$STEP" "\${failed#,}" "$LOG_NAME" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" |
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

# The model with the machine's identity, which the container does not have.
fetch_model() {
  rm -rf "$WORK/inputs/model" && mkdir -p "$WORK/inputs/model" &&
    gcloud storage cp --recursive "$1" "$WORK/inputs/model/" --quiet
}

# fetch_images PURPOSE SOURCE. No images at all is no error here: only INT8 needs them, and it says so. No permission is one.
fetch_images() {
  local said
  mkdir -p "$WORK/inputs/$1" || return 1
  said=$(gcloud storage rsync --recursive --delete-unmatched-destination-objects "$2" "$WORK/inputs/$1" --quiet 2>&1) &&
    return 0
  echo "$said"
  case "$said" in
    *"matched no objects"* | *"did not match"* | *"not found"* | *404*) echo "$1: no images in $2" ;;
    *) echo "$1: $2 cannot be read. Grant roles/storage.objectViewer on it to this machine's service account."; return 1 ;;
  esac
}

install_requirements() {
  rm -rf "$WORK/site" &&
    docker run --rm --volume "$WORK:/work" "$IMAGE" python3 -m pip install --quiet --require-hashes --no-deps \\
      --only-binary=:all: --target /work/site --requirement "/work/package/convert/requirements/$1"
}

# Runs inside a condition, where a failing line does not end the script: every line says what a failure does.
convert_artefact() {
  local name=$1
  rm -rf "$WORK/previous" "$WORK/output" && mkdir -p "$WORK/previous" "$WORK/output" || return 1
  gcloud storage cp "$BUCKET/artefacts/$name/manifest.json" "$WORK/previous/manifest.json" --quiet ||
    echo "$name: no earlier artefact"
  if ! docker run --rm --gpus all --shm-size 1g --volume "$WORK:/work" --env PYTHONPATH=/work/package:/work/site \\
    --env PYTHONDONTWRITEBYTECODE=1 "$IMAGE" python3 -m convert --plan /work/plan.json --artefact "$name" \\
    --previous /work/previous --output /work/output "\${CONVERT_ARGS[@]}"; then
    [ ! -e "$WORK/output/failure.json" ] ||
      retry gcloud storage cp "$WORK/output/failure.json" "$BUCKET/conversion/failures/$name.json" --quiet
    return 1
  fi
  if [ ! -e "$WORK/output/manifest.json" ]; then
    echo "$name: unchanged"
    return 0
  fi
  # The manifest goes last: an artefact without one is unfinished and is made again.
  retry gcloud storage rsync --recursive --delete-unmatched-destination-objects "$WORK/output/1" \\
    "$BUCKET/artefacts/$name/1" --quiet &&
    retry gcloud storage cp "$WORK/output/manifest.json" "$BUCKET/artefacts/$name/manifest.json" --quiet
}

convert_or_note() {
  step "convert $1"
  convert_artefact "$1" || { echo "$1: FAILED"; FAILED+=("$1"); }
}

publish_variant() {
  local variant=$1 artefact=$2
  case " \${FAILED[*]} " in *" $artefact "*) echo "$variant: not published, $artefact failed"; return 0 ;; esac
  step "publish $variant"
  retry gcloud storage rsync --recursive --delete-unmatched-destination-objects "$BUCKET/artefacts/$artefact/1" \\
    "$REPOSITORY/$variant/1" --quiet
}

step "wait for the GPU driver"
wait_for_driver
step "fetch plan and package"
retry fetch_inputs
${setUpLines.join("\n")}
${model === null ? "" : `CONVERT_ARGS+=(--model "/work/inputs/model/${model.split("/").at(-1)}")\n`}CONVERT_ARGS+=(--calibration /work/inputs/calibration)
if [ -n "$(find "$WORK/inputs/held-out" -type f -print -quit)" ]; then
  CONVERT_ARGS+=(--held-out /work/inputs/held-out)
else
  CONVERT_ARGS+=(--without-held-out)
fi
${[...convertLines, ...publishLines].join("\n")}
if [ "\${#FAILED[@]}" -gt 0 ]; then
  STEP="convert \${FAILED[*]}"
  exit 1
fi
STEP="all done"
`;
}
