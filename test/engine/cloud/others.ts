/** Providers of which the stack uses one type each. */
import { createHash } from "node:crypto";
import type { ProviderDefinition } from "./kinds";

/** random: a value that stays the same as long as the resource does. */
export const randomProvider: ProviderDefinition = {
  name: "random",
  npmPackage: "@pulumi/random",
  dataSources: {},
  kinds: {
    "random:index/randomPassword:RandomPassword": {
      id: (_inputs, world) => `password-${world.all().length}`,
      create: async (thing) => {
        const length = Number(thing.inputs.length);
        const seed = createHash("sha512").update(`${thing.logicalName}${Date.now()}`).digest("hex");
        Object.assign(thing.computed, { result: seed.repeat(4).slice(0, length), bcryptHash: "$2a$10$none" });
      },
    },
  },
};

/** docker-build: nothing is built; the digest follows from the inputs. */
export const dockerBuildProvider: ProviderDefinition = {
  name: "docker-build",
  npmPackage: "@pulumi/docker-build",
  dataSources: {},
  kinds: {
    "docker-build:index:Image": {
      id: (inputs) => String((inputs.tags as string[] | undefined)?.[0] ?? "image"),
      computed: (inputs) => {
        const digest = `sha256:${createHash("sha256").update(JSON.stringify(inputs)).digest("hex")}`;
        const [tag = "image"] = (inputs.tags ?? []) as string[];
        return { digest, ref: `${tag}@${digest}`, contextHash: digest.slice(7, 19) };
      },
    },
  },
};
