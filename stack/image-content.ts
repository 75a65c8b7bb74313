import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** What the load generator's image is made of, below the project's folder; loadgen/Dockerfile.dockerignore says the same. */
export const imageSources: readonly string[] = [
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "kserve",
  "http2",
  "model-repo",
  "loadgen",
];

/** Parts of those that are left out. */
export const imageExclusions: readonly string[] = ["model-repo/convert"];

/**
 * Tag of the image: a hash of its sources. Tags in the registry never move, so a new content needs a new tag, and the same
 * content must not be pushed twice.
 */
export function imageContentTag(projectFolder: string): string {
  const hash = createHash("sha256");
  for (const file of imageSources.flatMap((source) => filesBelow(projectFolder, source))) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(projectFolder, file)))
      .update("\0");
  }
  return `content-${hash.digest("hex").slice(0, 16)}`;
}

function filesBelow(projectFolder: string, path: string): string[] {
  if (imageExclusions.includes(path)) return [];
  if (statSync(join(projectFolder, path)).isFile()) return [path];
  return readdirSync(join(projectFolder, path))
    .sort()
    .flatMap((name) => filesBelow(projectFolder, `${path}/${name}`));
}
