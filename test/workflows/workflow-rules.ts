/** What every GitHub workflow of the project must hold to, as plain functions over the parsed file. */
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly if?: string;
  readonly "runs-on"?: string;
  readonly "timeout-minutes"?: number;
  readonly environment?: string;
  readonly permissions?: Readonly<Record<string, string>> | string;
  readonly concurrency?: { readonly group?: string; readonly "cancel-in-progress"?: boolean | string };
  readonly strategy?: { readonly matrix?: Readonly<Record<string, readonly string[]>> };
  readonly needs?: string | readonly string[];
  readonly steps?: readonly Step[];
}

export interface Workflow {
  readonly name?: string;
  readonly on?: string | readonly string[] | Readonly<Record<string, unknown>>;
  readonly permissions?: Readonly<Record<string, string>> | string;
  readonly jobs?: Readonly<Record<string, Job>>;
}

/** A composite action. */
export interface Action {
  readonly runs?: { readonly using?: string; readonly steps?: readonly Step[] };
}

export const parseWorkflow = (text: string): Workflow => parse(text) as Workflow;
export const parseAction = (text: string): Action => parse(text) as Action;

const triggersOf = (workflow: Workflow): readonly string[] => {
  const { on = [] } = workflow;
  if (typeof on === "string") return [on];
  return Array.isArray(on) ? (on as readonly string[]) : Object.keys(on);
};

/** The only permissions a job may have, and what for. */
const ALLOWED_PERMISSIONS: Readonly<Record<string, string>> = {
  contents: "read",
  // Keyless Google authentication.
  "id-token": "write",
  // The comment with the preview.
  "pull-requests": "write",
};

/**
 * Everything wrong with a workflow.
 *
 * @param text the file as it is: the versions behind pinned actions are comments
 */
export function workflowProblems(text: string): string[] {
  const workflow = parseWorkflow(text);
  const triggers = triggersOf(workflow);
  const jobs = Object.entries(workflow.jobs ?? {});
  const problems = [
    ...triggers
      .filter((trigger) => ["pull_request_target", "workflow_run", "issue_comment"].includes(trigger))
      .map((trigger) => `${trigger} runs with the rights of main on what strangers send`),
    ...(JSON.stringify(workflow.permissions) === '{"contents":"read"}'
      ? []
      : ["top-level permissions must be contents: read alone"]),
    ...jobs.flatMap(([name, job]) => jobProblems(job, triggers).map((problem) => `${name}: ${problem}`)),
    ...stepProblems(
      text,
      jobs.flatMap(([, job]) => job.steps ?? []),
    ),
  ];
  if (triggers.includes("pull_request") && /\bsecrets\.(?!GITHUB_TOKEN\b)/.test(text)) {
    problems.push("reads a secret in a run for pull requests");
  }
  return problems;
}

function jobProblems(job: Job, triggers: readonly string[]): string[] {
  const permissions = job.permissions ?? {};
  if (typeof permissions === "string") return [`permissions ${permissions} are too wide`];
  const identity = permissions["id-token"] === "write";
  return [
    ...Object.entries(permissions)
      .filter(([scope, level]) => ALLOWED_PERMISSIONS[scope] !== level)
      .map(([scope, level]) => `permission ${scope}: ${level} is not needed`),
    ...(job["timeout-minutes"] === undefined ? ["has no time limit"] : []),
    ...(/-\d/.test(job["runs-on"] ?? "")
      ? []
      : [`runs on ${job["runs-on"] ?? "nothing"}, which changes without notice`]),
    ...(identity && job.environment === undefined ? ["has an identity that is bound to no environment"] : []),
    ...(identity && job.concurrency?.group === undefined ? ["may run twice at once"] : []),
    ...(identity && triggers.includes("pull_request") && !FORK_GUARD.test(job.if ?? "")
      ? ["gives an identity to forks"]
      : []),
  ];
}

const FORK_GUARD = /github\.event\.pull_request\.head\.repo\.full_name == github\.repository/;

/** What is wrong with the steps of a workflow or composite action. */
export function stepProblems(text: string, steps: readonly Step[]): string[] {
  return steps.flatMap(({ uses, run, with: inputs = {} }) => [
    ...(uses === undefined || uses.startsWith("./") || isPinned(text, uses)
      ? []
      : [`${uses} is not pinned to a commit with its version beside it`]),
    ...(uses?.startsWith("actions/checkout@") && inputs["persist-credentials"] !== false
      ? ["checkout leaves its token on disk"]
      : []),
    ...(run !== undefined && /\$\{\{/.test(run)
      ? [`an expression is pasted into a script: ${run.trim().split("\n")[0] ?? ""}`]
      : []),
  ]);
}

const isPinned = (text: string, uses: string): boolean =>
  /@[0-9a-f]{40}$/.test(uses) &&
  new RegExp(`${uses.replaceAll("/", "\\/")} # v\\d+\\.\\d+\\.\\d+$`, "m").test(text);
