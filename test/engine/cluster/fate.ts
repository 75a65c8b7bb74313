/** Decides what becomes of pods, from outside the program that makes them. */
import type { KubeApi } from "./kube-api";
import { until } from "./program";

/** What kwok does to the pods of an app from now on; the annotations are those of stages.yaml. */
export interface Fate {
  /** Value of the pods' label `app`. */
  app: string;
  /** They become ready only after this, e.g. `6s`. */
  readyAfter?: string;
  /** Or never: the reason why their containers wait, e.g. `ImagePullBackOff`. */
  waiting?: string;
  /** Message of the waiting state and of the event. */
  message?: string;
}

const group = "/apis/admissionregistration.k8s.io/v1";
const quoted = (text: string): string => JSON.stringify(text);

/** Applies to pods that are created from now on, in the place of an earlier fate of the same app. Returns a function that ends it. */
export async function setFate(api: KubeApi, fate: Fate): Promise<() => Promise<void>> {
  const name = `fate-${fate.app}`;
  const annotations: Record<string, string | undefined> = {
    "fate.test/ready-after": fate.readyAfter,
    "fate.test/waiting": fate.waiting,
    "fate.test/message": fate.message,
  };
  const pairs = Object.entries(annotations).flatMap(([key, value]) =>
    value ? [`${quoted(key)}: ${quoted(value)}`] : [],
  );
  const isActive = async (): Promise<boolean> => {
    const probe = await api.create("/api/v1/namespaces/default/pods?dryRun=All", {
      metadata: { name: "probe", labels: { app: fate.app } },
      spec: { containers: [{ name: "probe", image: "none:1" }] },
    });
    return Object.keys(probe.metadata.annotations ?? {}).some((key) => key.startsWith("fate.test/"));
  };
  const end = async (): Promise<void> => {
    await api.delete(`${group}/mutatingadmissionpolicybindings/${name}`);
    await api.delete(`${group}/mutatingadmissionpolicies/${name}`);
    await until("the API server has forgotten the fate", async () => !(await isActive()));
  };
  await end();
  await api.create(`${group}/mutatingadmissionpolicies`, {
    metadata: { name },
    spec: {
      ...{ failurePolicy: "Fail", reinvocationPolicy: "Never" },
      matchConstraints: {
        resourceRules: [
          { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
        ],
      },
      matchConditions: [
        {
          name: "app",
          expression: `has(object.metadata.labels) && object.metadata.labels[?'app'].orValue('') == ${quoted(fate.app)}`,
        },
      ],
      mutations: [
        {
          patchType: "ApplyConfiguration",
          applyConfiguration: {
            expression: `Object{metadata: Object.metadata{annotations: {${pairs.join(", ")}}}}`,
          },
        },
      ],
    },
  });
  await api.create(`${group}/mutatingadmissionpolicybindings`, {
    metadata: { name },
    spec: { policyName: name },
  });
  await until("the API server applies the fate", isActive);
  return end;
}
