/**
 * The accuracy gate: before a variant's speed counts, its answers are compared with those of a reference on held-out images, through
 * the serving API. A conversion that answers differently is not measured.
 */
import type { Variant } from "../../model-repo/variant";
import { compareAnswers, NotComparableError, type AccuracyFigures } from "./compare";
import { violations, type LimitsByPrecision } from "./limits";

/** What was found out about one variant. */
export interface AccuracyVerdict {
  readonly reference: string;
  /** Null when the answers cannot be compared; `reasons` then says why. */
  readonly figures: AccuracyFigures | null;
  readonly passed: boolean;
  /** Why it does not pass; empty when it does. */
  readonly reasons: readonly string[];
}

/** Keeps figures between runs of a sweep: a check is not repeated when it is continued. */
export interface AccuracyStore {
  find(variant: Variant, reference: Variant): AccuracyFigures | null;
  add(variant: Variant, reference: Variant, figures: AccuracyFigures): void;
}

export interface AccuracyGateOptions {
  readonly reference: Variant;
  /** All variants of the sweep. */
  readonly variants: readonly Variant[];
  readonly limits: LimitsByPrecision;
  readonly store: AccuracyStore;
  /** Makes the target serve the variant and asks it for its scores of the held-out images. */
  readonly scoresOf: (variant: Variant, signal?: AbortSignal) => Promise<readonly Float32Array[]>;
}

export class AccuracyGate {
  private readonly verdicts = new Map<string, AccuracyVerdict>();
  private expected: readonly Float32Array[] | null = null;

  constructor(private readonly options: AccuracyGateOptions) {}

  /**
   * Checks one variant, and has it served by then. An unconverted model has nothing to be compared with: null.
   * @throws Error when the server does not answer
   */
  async check(variant: Variant, signal?: AbortSignal): Promise<AccuracyVerdict | null> {
    const { reference, store, scoresOf } = this.options;
    const { precision } = variant.artefact;
    if (isSameArtefact(variant, reference)) {
      // It is served now anyway: its answers are needed by every variant after it.
      if (variant.name === reference.name && this.isNeeded())
        this.expected ??= await scoresOf(variant, signal);
      return null;
    }
    if (precision === "original") return null;
    const limits = this.options.limits[precision];
    const conclude = (figures: AccuracyFigures): AccuracyVerdict => {
      const reasons = violations(figures, limits);
      return { reference: reference.name, figures, passed: reasons.length === 0, reasons };
    };
    const known = store.find(variant, reference);
    let verdict: AccuracyVerdict;
    if (known !== null) verdict = conclude(known);
    else {
      this.expected ??= await scoresOf(reference, signal);
      const answers = await scoresOf(variant, signal);
      try {
        const figures = compareAnswers(this.expected, answers);
        store.add(variant, reference, figures);
        verdict = conclude(figures);
      } catch (error) {
        if (!(error instanceof NotComparableError)) throw error;
        verdict = { reference: reference.name, figures: null, passed: false, reasons: [error.message] };
      }
    }
    this.verdicts.set(variant.name, verdict);
    return verdict;
  }

  /** Null for variants that were not compared. */
  verdictOf(variant: Variant): AccuracyVerdict | null {
    return this.verdicts.get(variant.name) ?? null;
  }

  private isNeeded(): boolean {
    const { variants, reference, store } = this.options;
    return variants.some(
      (variant) =>
        variant.artefact.precision !== "original" &&
        !isSameArtefact(variant, reference) &&
        store.find(variant, reference) === null,
    );
  }
}

/** Other settings of the reference's own artefact need no check. */
function isSameArtefact(a: Variant, b: Variant): boolean {
  return a.artefact.name === b.artefact.name;
}
