/** Weighted least squares of phase times against batch sizes. */

/** One equation perBatch + perImage x batch = ms. */
export interface Equation {
  readonly batch: number;
  readonly ms: number;
  readonly weight: number;
}

export function slopeThroughOrigin(equations: readonly Equation[]): number {
  // Relative errors count alike: weighted mean of ms / batch.
  const weights = equations.reduce((sum, { weight }) => sum + weight, 0);
  return equations.reduce((sum, { batch, ms, weight }) => sum + (weight * ms) / batch, 0) / weights;
}

/** perBatch + perImage x batch, milliseconds; `split` is false when the batches hardly differed. */
export interface Line {
  readonly perBatch: number;
  readonly perImage: number;
  readonly split: boolean;
}

/**
 * Time per batch over time per image where trials do not tell them apart: published for ResNet-50 on a T4 are 1.5 (unconverted), 3.7 (INT8)
 * and 10.6 (FP16); see serving-model/data.
 */
const batchOverImage = 3;

/** Weighted least squares of relative errors, both terms >= 0. `split` is false when the batches hardly differ. */
export function line(equations: readonly Equation[]): Line {
  const usable = equations.filter(({ ms, batch }) => ms > 0 && batch > 0);
  const heavy = usable.filter(({ weight }) => weight >= 0.5);
  const batches = (heavy.length > 0 ? heavy : usable).map(({ batch }) => batch);
  const split = Math.max(...batches) > 1.2 * Math.min(...batches);
  let [s11, s12, s22, t1, t2] = [0, 0, 0, 0, 0];
  for (const { batch, ms, weight } of usable) {
    const w = weight / ms ** 2;
    s11 += w;
    s12 += w * batch;
    s22 += w * batch ** 2;
    t1 += w * ms;
    t2 += w * ms * batch;
  }
  const determinant = s11 * s22 - s12 ** 2;
  if (split && determinant > 0) {
    const perBatch = (t1 * s22 - t2 * s12) / determinant;
    const perImage = (t2 * s11 - t1 * s12) / determinant;
    if (perBatch >= 0 && perImage >= 0) return { perBatch, perImage, split };
    if (perImage < 0) return { perBatch: t1 / s11, perImage: 0, split };
  }
  if (split) return { perBatch: 0, perImage: t2 / s22, split };
  // One batch size only.
  const ms = (t1 / s11 + (t2 / s22) * (s12 / s11)) / 2;
  const batch = s12 / s11;
  const perImage = ms / (batchOverImage + batch);
  return { perBatch: batchOverImage * perImage, perImage, split };
}

export function relative(predicted: number, observed: number): number {
  return observed > 0 ? predicted / observed - 1 : 0;
}
