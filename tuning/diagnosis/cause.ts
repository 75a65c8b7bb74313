/** What the limit is called when a resource is it. */
import type { Cause } from "../trial";
import type { Resource } from "./relief";

const causes: Readonly<Record<Resource, Cause>> = {
  gpu: "gpu-bound",
  host: "host-bound",
  wire: "wire-bound",
  "queue-delay": "queue-delay",
  outside: "client-bound",
};

/** Of the GPU; where the CPU infers, its limit is `cpu-bound`. */
export function causeOf(resource: Resource): Cause {
  return causes[resource];
}
