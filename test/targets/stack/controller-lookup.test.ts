import { expect, it } from "vitest";
import type { StackOutputs } from "../../../stack/outputs";
import { connectStack } from "../../../targets/stack/connect-stack";
import type { Kube, PodInfo } from "../../../targets/stack/kube";
import { TargetError } from "../../../targets/target-error";

const pod = (name: string, isReady: boolean): PodInfo => ({
  ...{ name, uid: name, ip: null, node: null, startedAt: "" },
  isReady,
});

/** Looks at a stack whose Triton is ready. @returns what is wrong, and whether the ports that were opened are closed again */
async function look(controllers: () => Promise<PodInfo[]>) {
  let open = 0;
  const forward = async () => {
    open++;
    return { address: "127.0.0.1:1", close: async () => void open-- };
  };
  const kube = {
    pods: (namespace: string) =>
      namespace === "load" ? controllers() : Promise.resolve([pod("triton-0", true)]),
    forward,
  } as unknown as Kube;
  const outputs = {
    cluster: { server: "https://k" },
    triton: { namespace: "triton", podSelector: "a=b", ports: { grpc: 1, metrics: 2 } },
    loadGenerator: { namespace: "load", controllerPodSelector: "c=d", controllerPort: 3, workers: 1 },
  } as unknown as StackOutputs;
  const error: unknown = await connectStack({ stack: "dev", outputs, kube }).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TargetError);
  expect(open).toBe(0);
  return (error as TargetError).message;
}

it("a look for the controller that is refused is said as it is, not as a connection that fails", async () => {
  const refused = () => Promise.reject(Object.assign(new Error("long body"), { code: 403 }));
  expect(await look(refused)).toBe(
    "you may not list pods in load in the cluster of stack dev: add yourself to tuneMembers in the stack's configuration, then pulumi up",
  );
});

it("a controller that is not ready is named with what tells why", async () => {
  expect(await look(async () => [pod("controller-0", false)])).toBe(
    "no pod of the load controller of stack dev is ready: npm run explain -- --stack dev",
  );
});
