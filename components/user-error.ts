import * as pulumi from "@pulumi/pulumi";

/**
 * An error that the user can fix: Pulumi shows its message alone. It carries no stack, which would say nothing here and which
 * Node 20 takes up to a minute to format when sources are compiled on the fly (nodejs/node#64011).
 */
export function userError(message: string): pulumi.RunError {
  return Object.assign(new pulumi.RunError(message), { stack: undefined });
}
