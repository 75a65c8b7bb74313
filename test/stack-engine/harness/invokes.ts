/** Answers to the data sources that the stack asks for. */
import { at, type PropertyMap, type PropertyValue } from "./property-value";

/** Answer by token, e.g. `gcp:compute/getImage:getImage`; replaces the standard answer. */
export type InvokeFixtures = Readonly<Record<string, (args: PropertyMap) => PropertyMap>>;

/** Project number of the pretended project. */
export const PROJECT_NUMBER = "123456789012";

const text = (value: PropertyValue | undefined, fallback: string): string =>
  typeof value === "string" ? value : fallback;

const STANDARD: InvokeFixtures = {
  "gcp:organizations/getProject:getProject": (args) => {
    const projectId = text(at(args, "projectId"), "test-project");
    return { id: `projects/${projectId}`, projectId, number: PROJECT_NUMBER, name: projectId, labels: {} };
  },
  "gcp:organizations/getClientConfig:getClientConfig": () => ({
    id: "client-config",
    accessToken: "token-of-this-run",
    project: "test-project",
    region: "us-central1",
    zone: "us-central1-a",
  }),
  "gcp:compute/getImage:getImage": (args) => {
    const project = text(at(args, "project"), "test-project");
    const name = `${text(at(args, "family"), text(at(args, "name"), "image"))}-v20260818`;
    const selfLink = `https://www.googleapis.com/compute/v1/projects/${project}/global/images/${name}`;
    return { id: `projects/${project}/global/images/${name}`, project, name, selfLink, diskSizeGb: 50 };
  },
  // One object under whatever prefix is asked for: every model has been converted.
  "gcp:storage/getBucketObjects:getBucketObjects": (args) => ({
    id: "objects",
    bucket: text(at(args, "bucket"), "bucket"),
    bucketObjects: [{ name: `${text(at(args, "prefix"), "")}model.savedmodel/saved_model.pb` }],
  }),
  "gcp:container/getCluster:getCluster": (args) => ({
    id: `projects/${text(at(args, "project"), "test-project")}/locations/${text(at(args, "location"), "us-central1")}/clusters/${text(at(args, "name"), "adopted")}`,
    name: text(at(args, "name"), "adopted"),
    location: text(at(args, "location"), "us-central1"),
    endpoint: "203.0.113.10",
    masterAuths: [{ clusterCaCertificate: "Q0EgZm9yIHRlc3Rz", clientCertificate: "", clientKey: "" }],
    controlPlaneEndpointsConfigs: [
      { dnsEndpointConfigs: [{ endpoint: "gke-adopted.us-central1.gke.goog", allowExternalTraffic: true }] },
    ],
  }),
};

/**
 * @throws when neither `fixtures` nor the standard answers know the token
 */
export function answerInvoke(token: string, args: PropertyMap, fixtures: InvokeFixtures = {}): PropertyMap {
  const answer = fixtures[token] ?? STANDARD[token];
  if (answer === undefined)
    throw new Error(
      `The program asks for ${token}, for which the test has no answer: add one to invokes.ts.`,
    );
  return answer(args);
}
