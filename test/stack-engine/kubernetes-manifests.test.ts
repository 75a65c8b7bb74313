/** Every Kubernetes object that the program registers, against the API's schema and against the other objects. */
import { beforeAll, describe, expect, it } from "vitest";
import { plain, type Plain, type Recording, type Registration } from "./harness";
import { apiVersionChecked, schemaProblems } from "./kubernetes-schema";
import { STACKS, up, type Overrides } from "./real-stack";

type Json = { [key: string]: Plain };
const object = (value: Plain | undefined): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
const list = (value: Plain | undefined): Json[] => (Array.isArray(value) ? value.map(object) : []);

const text = (value: Plain | undefined): string =>
  typeof value === "string" || typeof value === "number" ? `${value}` : "";

interface Manifest {
  readonly registration: Registration;
  readonly body: Json;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

const manifestsOf = (recording: Recording): Manifest[] =>
  recording.all
    .filter(({ type }) => type.startsWith("kubernetes:"))
    .map((registration) => {
      const body = object(plain(registration.inputs));
      const metadata = object(plain(registration.outputs.metadata));
      return {
        registration,
        body,
        kind: text(body.kind),
        name: text(metadata.name),
        namespace: text(metadata.namespace ?? ""),
      };
    });

interface Pod {
  readonly owner: Manifest;
  readonly labels: Json;
  readonly spec: Json;
  readonly containers: Json[];
}

const podsOf = (manifests: readonly Manifest[]): Pod[] =>
  manifests
    .filter(({ kind }) => ["Deployment", "DaemonSet", "StatefulSet", "Job"].includes(kind))
    .map((owner) => {
      const template = object(object(owner.body.spec).template);
      const spec = object(template.spec);
      const containers = [...list(spec.initContainers), ...list(spec.containers)];
      return { owner, labels: object(object(template.metadata).labels), spec, containers };
    });

const includes = (labels: Json, selector: Json): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

/** Settings that bring in every kind of object the program can make. */
const SETTINGS: [string, (typeof STACKS)[number], Overrides][] = [
  ["dev", "dev", {}],
  ["prod", "prod", {}],
  [
    "dev with an autoscaler",
    "dev",
    {
      autoscale: true,
      autoscaleMaxReplicas: 2,
      autoscaleRatePerS: 900,
      gpuMaxNodes: 2,
      loadGenerator: false,
    },
  ],
  ["dev with members, asleep", "dev", { tuneMembers: ["user:a@example.com"], asleep: true }],
  ["dev with a history of measurements that stays", "dev", { loadHistory: "persistent" }],
];

describe.each(SETTINGS)("%s", (_name, stack, overrides) => {
  let recording: Recording;
  let manifests: Manifest[];
  let pods: Pod[];
  beforeAll(async () => {
    recording = await up(stack, overrides);
    manifests = manifestsOf(recording);
    pods = podsOf(manifests);
  });
  const find = (kind: string, namespace: string, name: unknown) =>
    manifests.find(
      (manifest) => manifest.kind === kind && manifest.namespace === namespace && manifest.name === name,
    );

  it("has only known fields of the right type, and all that are demanded", () => {
    expect(manifests.length).toBeGreaterThan(30);
    expect(apiVersionChecked()).toBe("v1.34.0");
    const problems = manifests.flatMap(({ registration, body }) =>
      schemaProblems(body).map((problem) => `${registration.name}: ${problem}`),
    );
    expect(problems).toEqual([]);
  });

  it("names apiVersion and kind as the type says", () => {
    for (const { registration, body } of manifests) {
      const [, groupVersion = "", kind] = registration.type.split(":");
      expect(`${text(body.apiVersion)}:${text(body.kind)}`).toBe(
        `${groupVersion.replace(/^core\//, "")}:${kind}`,
      );
    }
  });

  it("puts everything into namespaces that the stack makes, but for the driver", () => {
    const made = manifests.filter(({ kind }) => kind === "Namespace").map(({ name }) => name);
    const clusterWide = ["Namespace", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "APIService"];
    for (const { kind, namespace, name, body } of manifests.filter(
      (manifest) => !clusterWide.includes(manifest.kind),
    )) {
      if (name === "nvidia-driver-installer") expect(namespace).toBe("kube-system");
      else if (kind === "RoleBinding" && namespace === "kube-system")
        expect(object(body.roleRef).name).toBe("extension-apiserver-authentication-reader");
      else expect(made, name).toContain(namespace);
    }
  });

  it("selects its own pods", () => {
    for (const { owner, labels } of pods) {
      const selector = object(object(object(owner.body.spec).selector).matchLabels);
      expect(Object.keys(selector).length).toBeGreaterThan(0);
      expect(includes(labels, selector), owner.name).toBe(true);
    }
  });

  it("mounts only volumes it has, and only from what exists", () => {
    for (const { owner, spec, containers } of pods) {
      const volumes = list(spec.volumes);
      const names = volumes.map(({ name }) => name);
      for (const mount of containers.flatMap((container) => list(container.volumeMounts)))
        expect(names).toContain(mount.name);
      for (const volume of volumes) {
        const references = [
          ["ConfigMap", object(volume.configMap).name],
          ["Secret", object(volume.secret).secretName],
          ["PersistentVolumeClaim", object(volume.persistentVolumeClaim).claimName],
        ] as const;
        for (const [kind, name] of references.filter(([, reference]) => reference !== undefined)) {
          expect(
            find(kind, owner.namespace, name),
            `${owner.name} needs ${kind} ${text(name)}`,
          ).toBeDefined();
        }
      }
      for (const variable of containers.flatMap((container) => list(container.env))) {
        const secret = object(object(variable.valueFrom).secretKeyRef);
        if (secret.name !== undefined) expect(find("Secret", owner.namespace, secret.name)).toBeDefined();
      }
    }
  });

  it("waits for what its pods need before it starts them", () => {
    for (const { owner, spec, containers } of pods) {
      const wanted = [
        ...list(spec.volumes).flatMap((volume) => [
          find("ConfigMap", owner.namespace, object(volume.configMap).name),
          find("Secret", owner.namespace, object(volume.secret).secretName),
          find("PersistentVolumeClaim", owner.namespace, object(volume.persistentVolumeClaim).claimName),
        ]),
        ...containers
          .flatMap((container) => list(container.env))
          .map((variable) =>
            find("Secret", owner.namespace, object(object(variable.valueFrom).secretKeyRef).name),
          ),
        find("ServiceAccount", owner.namespace, spec.serviceAccountName),
      ].filter((manifest) => manifest !== undefined);
      for (const { registration } of wanted) {
        expect(
          recording.comesAfter(owner.registration, registration),
          `${owner.name} after ${registration.name}`,
        ).toBe(true);
      }
    }
  });

  it("runs under service accounts that exist", () => {
    for (const { owner, spec } of pods.filter(
      ({ spec: { serviceAccountName } }) => serviceAccountName !== undefined,
    )) {
      expect(find("ServiceAccount", owner.namespace, spec.serviceAccountName), owner.name).toBeDefined();
    }
    for (const binding of manifests.filter(
      ({ kind, namespace }) => kind === "RoleBinding" && namespace !== "kube-system",
    )) {
      const role = object(binding.body.roleRef);
      if (role.kind === "Role")
        expect(find("Role", binding.namespace, role.name), binding.name).toBeDefined();
      for (const subject of list(binding.body.subjects).filter(({ kind }) => kind === "ServiceAccount")) {
        expect(find("ServiceAccount", text(subject.namespace), subject.name), binding.name).toBeDefined();
      }
    }
  });

  it("sends Services and probes to ports that a pod has", () => {
    for (const service of manifests.filter(({ kind }) => kind === "Service")) {
      const spec = object(service.body.spec);
      const behind = pods.filter(
        ({ owner, labels }) =>
          owner.namespace === service.namespace && includes(labels, object(spec.selector)),
      );
      expect(behind.length, service.name).toBe(1);
      const ports = behind.flatMap(({ containers }) =>
        containers.flatMap((container) => list(container.ports)),
      );
      for (const port of list(spec.ports)) {
        const target = port.targetPort ?? port.port;
        expect(
          ports.some(({ name, containerPort }) => name === target || containerPort === target),
          `${service.name} ${text(target)}`,
        ).toBe(true);
      }
    }
    for (const { containers } of pods) {
      for (const container of containers) {
        for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe].map(
          object,
        )) {
          const { port } = { ...object(probe.httpGet), ...object(probe.tcpSocket), ...object(probe.grpc) };
          if (port === undefined) continue;
          const ports = list(container.ports);
          expect(
            ports.some(({ name, containerPort }) => name === port || containerPort === port),
            `${text(container.name)} ${text(port)}`,
          ).toBe(true);
        }
      }
    }
  });

  it("asks for memory and CPU in every container, and limits memory", () => {
    for (const { owner, containers } of pods) {
      for (const container of containers) {
        const { requests, limits } = object(container.resources);
        for (const resource of ["cpu", "memory"])
          expect(
            object(requests)[resource],
            `${owner.name} ${text(container.name)} ${resource}`,
          ).toBeDefined();
        // The installer runs once a node and is allowed what it needs.
        if (container.name !== "nvidia-driver-installer")
          expect(object(limits).memory, owner.name).toBeDefined();
        for (const [resource, limit] of Object.entries(object(limits))) {
          const request = object(requests)[resource];
          if (request !== undefined)
            expect(quantity(request), `${owner.name} ${resource}`).toBeLessThanOrEqual(quantity(limit));
        }
      }
    }
  });

  it("meets the Pod Security level restricted, but for the driver installer", () => {
    for (const { owner, spec, containers } of pods.filter(
      ({ owner: { name } }) => name !== "nvidia-driver-installer",
    )) {
      const pod = object(spec.securityContext);
      expect([spec.hostNetwork, spec.hostPID, spec.hostIPC].filter(Boolean), owner.name).toEqual([]);
      expect(object(pod.seccompProfile).type, owner.name).toBe("RuntimeDefault");
      for (const volume of list(spec.volumes)) expect(volume.hostPath, owner.name).toBeUndefined();
      for (const container of containers) {
        const own = object(container.securityContext);
        expect(own.runAsNonRoot ?? pod.runAsNonRoot, owner.name).toBe(true);
        expect(own.runAsUser ?? pod.runAsUser, owner.name).not.toBe(0);
        expect(own.allowPrivilegeEscalation, owner.name).toBe(false);
        expect(own.privileged ?? false).toBe(false);
        expect(object(own.capabilities), owner.name).toEqual({ drop: ["ALL"] });
      }
    }
  });

  it("lets NetworkPolicies choose pods that exist, and admits no address range but Google's", () => {
    for (const policy of manifests.filter(({ kind }) => kind === "NetworkPolicy")) {
      const spec = object(policy.body.spec);
      const selector = object(object(spec.podSelector).matchLabels);
      if (Object.keys(selector).length > 0) {
        expect(
          pods.some(
            ({ owner, labels }) => owner.namespace === policy.namespace && includes(labels, selector),
          ),
          policy.name,
        ).toBe(true);
      }
      for (const peer of list(spec.ingress).flatMap((rule) => list(rule.from)))
        expect(peer.ipBlock, policy.name).toBeUndefined();
    }
    for (const namespace of manifests.filter(({ kind }) => kind === "Namespace").map(({ name }) => name)) {
      const closed = manifests.filter(
        ({ kind, namespace: here }) => kind === "NetworkPolicy" && here === namespace,
      );
      expect(
        closed.some(({ body }) => {
          const spec = object(body.spec);
          return (
            Object.keys(object(spec.podSelector)).length === 0 &&
            list(spec.ingress).length === 0 &&
            list(spec.egress).length === 0
          );
        }),
        `${namespace} is closed by default`,
      ).toBe(true);
    }
  });
});

/** Plain number of a Kubernetes quantity. */
function quantity(value: Plain): number {
  const match = /^(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(text(value));
  if (match === null) throw new Error(`${JSON.stringify(value)} is no quantity.`);
  const factors: Record<string, number> = {
    "": 1,
    m: 1e-3,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    Ti: 2 ** 40,
  };
  return Number(match[1]) * (factors[match[2] ?? ""] ?? NaN);
}

describe("the check itself", () => {
  const deployment = (container: Json, spec: Json = {}): Json => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      template: { spec: { containers: [{ name: "web", ...container }] } },
      ...spec,
    },
  });
  const cases: [string, Json, string[]][] = [
    ["accepts a good one", deployment({ image: "web:1", ports: [{ containerPort: 80 }] }), []],
    ["a misspelt field", deployment({}, { replicaz: 2 }), ["spec.replicaz: is no field of V1DeploymentSpec"]],
    ["a text for a number", deployment({}, { replicas: "2" }), ['spec.replicas: is "2", must be a number']],
    [
      "a number for a text",
      deployment({ env: [{ name: "PORT", value: 80 }] }),
      ["spec.template.spec.containers[0].env[0].value: is 80, must be a string"],
    ],
    [
      "a number in a map of texts",
      deployment({ resources: { limits: { cpu: 2 } } }),
      ['spec.template.spec.containers[0].resources.limits["cpu"]: is 2, must be a string'],
    ],
    [
      "a missing field",
      { apiVersion: "apps/v1", kind: "Deployment", spec: {} },
      ["spec.selector: is missing", "spec.template: is missing"],
    ],
    [
      "an unknown kind",
      { apiVersion: "apps/v1", kind: "Deploymint" },
      ["kind: apps/v1 Deploymint is not in Kubernetes v1.34.0"],
    ],
    [
      "an object for a list",
      deployment({ ports: { containerPort: 80 } }),
      ['spec.template.spec.containers[0].ports: is {"containerPort":80}, must be a list'],
    ],
    [
      "half a port",
      deployment({ livenessProbe: { httpGet: { port: 80.5 } } }),
      [
        "spec.template.spec.containers[0].livenessProbe.httpGet.port: is 80.5, must be a whole number or a text",
      ],
    ],
  ];
  it.each(cases)("%s", (_name, manifest, expected) => {
    expect(schemaProblems(manifest)).toEqual(expected);
  });

  it("knows fields that are reserved words elsewhere", () => {
    const policy = {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      spec: { podSelector: {}, ingress: [{ from: [{ podSelectr: {} }] }] },
    };
    expect(schemaProblems(policy)).toEqual([
      "spec.ingress[0].from[0].podSelectr: is no field of V1NetworkPolicyPeer",
    ]);
  });
});
