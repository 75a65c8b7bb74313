/**
 * After the variants that were asked for: configurations that nobody wrote down. Each round proposes the one with the highest predicted
 * SLO rate, measures it, and predicts anew with what that showed; it ends when nothing is predicted to beat what was measured. The same
 * measurements lead to the same proposals, so an interrupted exploration goes on where it stopped.
 */
import type { Variant } from "../../model-repo/variant";
import type { VariantOutcome } from "../outcome";
import type { SweepResult } from "../sweep";
import { propose, type ProposalContext } from "./propose";
import type { Measured } from "./relatives";

export interface ProposedVariant {
  readonly variant: Variant;
  /** Requests/s. */
  readonly predictedSloRate: number;
}

export interface Exploration {
  readonly proposals: readonly ProposedVariant[];
  /** Configurations that were looked at in simulation. */
  readonly simulated: number;
  /** Why it ended, in a sentence. */
  readonly ended: string;
}

export interface ExploreOptions extends ProposalContext {
  /** Configurations measured at most. */
  readonly most: number;
  readonly variants: readonly Variant[];
  readonly outcomes: readonly VariantOutcome[];
  /** Measures one configuration. */
  readonly measure: (proposed: ProposedVariant, index: number) => Promise<SweepResult>;
}

export interface Explored extends SweepResult {
  readonly exploration: Exploration;
}

/** Outcomes are those of the proposals alone. */
export async function explore(options: ExploreOptions): Promise<Explored> {
  const measured: Measured[] = options.outcomes.flatMap((outcome) => {
    const variant = options.variants.find(({ name }) => name === outcome.variantName);
    return variant ? [{ variant, outcome }] : [];
  });
  const proposals: ProposedVariant[] = [];
  const outcomes: VariantOutcome[] = [];
  let simulated = 0;
  const end = (ended: string, endedEarly: string | null): Explored => ({
    outcomes,
    endedEarly,
    exploration: { proposals, simulated, ended },
  });
  while (proposals.length < options.most) {
    const proposal = propose(measured, options);
    simulated += proposal.simulated;
    if (proposal.best === null) return end(proposal.reason, null);
    proposals.push(proposal.best);
    const swept = await options.measure(proposal.best, proposals.length - 1);
    outcomes.push(...swept.outcomes);
    if (swept.endedEarly !== null) return end(swept.endedEarly, swept.endedEarly);
    measured.push({ variant: proposal.best.variant, outcome: swept.outcomes[0]! });
  }
  return end(`${options.most} configurations were measured, as many as were asked for.`, null);
}
