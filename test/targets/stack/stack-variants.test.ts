import { describe, expect, it } from "vitest";
import { findVariant } from "../../../model-repo/catalogue";
import type { StackOutputs } from "../../../stack/outputs";
import { stackVariants } from "../../../targets/stack/connect-stack";

const [served, other] = ["tftrt_fp16", "tftrt_int8"].map(findVariant);

function outputs(modelControlMode: "explicit" | "poll" | "none", ...more: unknown[]): StackOutputs {
  return {
    triton: { modelControlMode },
    variant: served,
    repositoryVariants: [served, ...more],
  } as unknown as StackOutputs;
}

describe("the variants of a stack", () => {
  it("are those of its repository, each once, or those that are named", () => {
    const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name);
    expect(names(stackVariants(outputs("explicit", other), "dev", null))).toEqual([
      "tftrt_fp16",
      "tftrt_int8",
    ]);
    expect(names(stackVariants(outputs("explicit", other), "dev", ["tftrt_int8"]))).toEqual(["tftrt_int8"]);
  });

  it("that are not there are named with what brings them, by the stack's configuration", () => {
    expect(() => stackVariants(outputs("explicit"), "dev", ["tftrt_int8"])).toThrow(
      /^stack dev has no tftrt_int8 in its model repository \(it has tftrt_fp16\): add it to repositoryVariants/,
    );
    for (const mode of ["none", "poll"] as const)
      expect(() => stackVariants(outputs(mode), "dev", ["tftrt_int8"])).toThrow(
        new RegExp(
          `^stack dev serves tftrt_fp16 and can load nothing else, because its modelControlMode is ${mode}: ` +
            "pulumi config set modelControlMode explicit --stack dev, or .*set variant tftrt_int8 --stack dev; " +
            "then pulumi up --stack dev and this command again$",
        ),
      );
  });
});
