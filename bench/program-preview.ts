/**
 * How long a whole-program preview takes against the engine stub, host process included, per stack file.
 * Run: npx tsx bench/program-preview.ts
 */
import { resolve } from "node:path";
import { runStack, stackConfig } from "../test/stack-engine/harness";

const programDir = resolve(__dirname, "..");

async function main(): Promise<void> {
  for (const stack of ["dev", "prod"]) {
    const config = stackConfig(programDir, stack, { project: "test-project" });
    const times: number[] = [];
    let resources = 0;
    for (let run = 0; run < 3; run++) {
      const startedMs = performance.now();
      resources = (await runStack({ programDir, stack, mode: "preview", config })).all.length;
      times.push((performance.now() - startedMs) / 1000);
    }
    console.log(
      `${stack}: ${resources} resources, ${times.map((time) => `${time.toFixed(1)} s`).join(", ")}`,
    );
  }
}

void main();
