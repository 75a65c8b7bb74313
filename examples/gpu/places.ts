/** Where a run's results lie: side by side, every GPU has a folder of its own. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The folder itself, and its gpu1, gpu2 and so on. */
export function placesIn(folder: string): string[] {
  const gpus = readdirSync(folder).filter((name) => /^gpu\d+$/.test(name));
  return [folder, ...gpus.sort().map((name) => join(folder, name))];
}
