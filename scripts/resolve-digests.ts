/**
 * `resolve-digests --stack dev`: asks the registries for the digest of every image of a stack and writes them into the stack's
 * file, so that the next update runs exactly these bytes. Needs a way to the registries.
 */
import { Command } from "commander";
import { join } from "node:path";
import { parseConfig } from "../stack/config";
import { resolveDigest } from "../stack/image-registry-client";
import { readStackFile, writeStackKey } from "../stack/stack-file";
import { stackImages } from "../stack/stack-images";

const projectFolder = join(__dirname, "..");

const command = new Command("resolve-digests")
  .description("Pin the images of a stack to their digests, in the key imageDigests of Pulumi.<stack>.yaml.")
  .requiredOption("--stack <name>", "stack whose file is read and written")
  .option("--folder <folder>", "folder of the stack files", projectFolder)
  .option("--print", "only print the digests")
  .action(async (options: { stack: string; folder: string; print?: boolean }) => {
    const config = parseConfig(readStackFile(options.folder, options.stack));
    const digests: Record<string, string> = {};
    for (const image of stackImages(config)) {
      digests[image] = await resolveDigest(image);
      process.stdout.write(`${image}@${digests[image]}\n`);
    }
    if (options.print !== true) writeStackKey(options.folder, options.stack, "imageDigests", digests);
  });

command.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
