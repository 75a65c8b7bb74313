/** Asks an image registry for the digest of a tag (OCI distribution API, github.com/opencontainers/distribution-spec). */

/** An image reference taken apart. */
export interface ImageName {
  /** Host of the registry, with port if it has one. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

/** A digest that could not be had; the message names the image and the registry's answer. */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
}

/** Docker Hub's API is not at the host that its image names carry. */
const apiHosts: Readonly<Record<string, string>> = { "docker.io": "registry-1.docker.io" };

const manifestTypes = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/**
 * Takes `HOST/PATH:TAG` apart.
 * @throws RegistryError if there is no host or no tag: neither is guessed
 */
export function parseImageName(image: string): ImageName {
  const match = /^([^/]+\.[^/]+|[^/]+:\d+)\/([^:@]+):([A-Za-z0-9_][A-Za-z0-9._-]*)$/.exec(image);
  const [, registry, repository, tag] = match ?? [];
  if (registry === undefined || repository === undefined || tag === undefined) {
    throw new RegistryError(`"${image}" is not HOST/PATH:TAG`);
  }
  return { registry, repository, tag };
}

/**
 * The digest that a tag stands for now.
 * @param scheme https, but for a registry on this machine
 * @throws RegistryError
 */
export async function resolveDigest(image: string, scheme: "https" | "http" = "https"): Promise<string> {
  const { registry, repository, tag } = parseImageName(image);
  const url = `${scheme}://${apiHosts[registry] ?? registry}/v2/${repository}/manifests/${tag}`;
  let answer = await ask(image, url);
  if (answer.status === 401) {
    answer = await ask(image, url, await anonymousToken(image, answer.headers.get("www-authenticate") ?? ""));
  }
  const digest = answer.headers.get("docker-content-digest");
  if (answer.ok && digest !== null && /^sha256:[0-9a-f]{64}$/.test(digest)) return digest;
  throw new RegistryError(
    `${image}: ${url} answered ${answer.status}${answer.ok ? " without a digest" : ""}`,
  );
}

async function ask(image: string, url: string, token?: string): Promise<Response> {
  const headers = new Headers({ accept: manifestTypes });
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  try {
    return await fetch(url, { method: "HEAD", headers });
  } catch (error) {
    throw new RegistryError(`${image}: ${url} cannot be reached: ${(error as Error).message}`);
  }
}

/** Public images need a token too; the challenge says where to get one. */
async function anonymousToken(image: string, challenge: string): Promise<string> {
  const field = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(challenge)?.[1];
  const realm = field("realm");
  if (!/^bearer /i.test(challenge) || realm === undefined) {
    throw new RegistryError(
      `${image}: the registry wants a login (${challenge || "no challenge"}); only public images are resolved`,
    );
  }
  const url = new URL(realm);
  for (const name of ["service", "scope"]) {
    const value = field(name);
    if (value !== undefined) url.searchParams.set(name, value);
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new RegistryError(`${image}: ${url.href} answered ${answer.status}`);
  const body = (await answer.json()) as { token?: unknown; access_token?: unknown };
  const token = body.token ?? body.access_token;
  if (typeof token === "string") return token;
  throw new RegistryError(`${image}: ${url.href} gave no token`);
}
