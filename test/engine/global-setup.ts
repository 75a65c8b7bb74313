/** Before any test: are the tools there? Said once, with the command that builds them, instead of by every test. */
import { requireTool } from "../../tools/cache";
import { toolNamed } from "../../tools/catalogue";

export default function setup(): void {
  const problems = (["kube-testbed", "pulumi-cli", "pulumi-provider", "triton"] as const).flatMap((name) => {
    try {
      requireTool(toolNamed(name));
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  if (problems.length > 0) throw new Error(problems.join("\n"));
}
