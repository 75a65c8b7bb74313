/** Gates that are Pulumi's own: locks of an update that was cut off, and fields that somebody else has changed. */
import type { Evidence } from "./evidence";
import type { Explanation } from "./explanation";

export function lock(evidence: Evidence): Explanation | undefined {
  const locked = /the stack is currently locked by \d+ lock\(s\)[^\n]*/.exec(evidence.pulumiOutput)?.[0];
  const pending = /(?:interrupted while creating|pending (?:CREATE|operations))[^\n]*/i.exec(
    evidence.pulumiOutput,
  )?.[0];
  const found = locked ?? pending;
  if (!found) return undefined;
  const urn = /\* (urn:pulumi:\S+?), interrupted while creating/.exec(evidence.pulumiOutput)?.[1];
  const type = urn?.split("::")[2]?.split("$").at(-1);
  const name = urn?.split("::").at(-1);
  return {
    gate: "lock",
    summary: locked
      ? "Another update of this stack runs, or one was killed and has left its lock."
      : "An earlier update was killed while it created something; Pulumi does not know whether that exists.",
    evidence: [`pulumi: ${found}`],
    steps: [
      ...(locked
        ? [{ why: "if nobody else updates the stack, remove the lock", command: "pulumi cancel" }]
        : []),
      {
        why: "if what was being created exists by now, take it over (docs/recovery.md); otherwise a second one is made",
        command: `pulumi import ${type ?? "TYPE"} ${name ?? "NAME"} ID --parent parent=URN --provider google=URN --protect=false --generate-code=false`,
      },
      { why: "forget the unfinished request", command: "pulumi refresh --clear-pending-creates --yes" },
    ],
    stuck: true,
  };
}

interface Conflict {
  manager: string;
  fields: string[];
  line: string;
}

/** `conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas`, possibly with a list of fields below. */
function conflictIn(output: string): Conflict | undefined {
  const match = /Apply failed with \d+ conflicts?:[^\n]*conflicts? with "([^"]+)"[^\n]*/.exec(output);
  if (!match) return undefined;
  const after = output.slice(match.index, match.index + 600);
  return {
    manager: match[1] ?? "",
    fields: [...new Set(after.match(/\.(?:spec|metadata|data)[\w.[\]{}"=:/-]*/g) ?? [])],
    line: match[0],
  };
}

/** Server-side apply refuses to overwrite a field that another manager has set to another value. */
export function fieldConflict(evidence: Evidence): Explanation | undefined {
  const conflict = conflictIn(evidence.pulumiOutput);
  if (!conflict) return undefined;
  const { manager, fields, line } = conflict;
  const named = fields.length > 0 ? fields.join(", ") : "a field";
  const replicas = fields.some((field) => field.endsWith(".spec.replicas"));
  return {
    gate: "field-conflict",
    summary: `${manager} has changed ${named}, which this stack manages; Pulumi does not overwrite somebody else's value.`,
    evidence: [`pulumi: ${line}`],
    steps: [
      {
        why: "to keep the change, put it into the stack's config",
        command: replicas
          ? "pulumi config set replicas N && pulumi up"
          : "pulumi config set KEY VALUE && pulumi up",
      },
      {
        why: "to undo it, set the stack's value with the same tool, which ends the conflict, then run pulumi up",
        command: replicas
          ? "kubectl -n triton scale deployment/triton --replicas=$(pulumi config get replicas)"
          : `kubectl edit (as ${manager})`,
      },
    ],
    stuck: true,
  };
}
