/**
 * Exhaustive coarse grids around what explorations of the tuned model end at: the truth that they are compared with. Every largest batch
 * with every number of instances and every queue delay; for 20 ms also smaller batches, which wait less. In the order in which they tell most:
 * those with most instances, then the largest batches, are the rivals of what an exploration finds, also of a grid that is cut off.
 */

/** An entry of a file of variants. */
export interface GridVariant {
  readonly name: string;
  readonly model: string;
  readonly maxBatchSize: number;
  readonly instanceCount: number;
  readonly queueDelayUs: number;
  readonly preferredBatchSizes: readonly number[];
}

/** Parts of measure.sh, with the largest batches that they try. */
const largestBatches = { grid: [32, 64, 128], grid20: [16, 32, 64, 128] } as const;
const instanceCounts = [4, 6, 8];
const queueDelaysUs = [0, 2000];

export type GridName = keyof typeof largestBatches;
export const gridNames = Object.keys(largestBatches) as GridName[];

export function gridVariants(grid: GridName): GridVariant[] {
  return descending(instanceCounts).flatMap((instanceCount) =>
    descending(largestBatches[grid]).flatMap((maxBatchSize) =>
      queueDelaysUs.map((queueDelayUs) => ({
        name: `max${maxBatchSize}_count${instanceCount}_delay${queueDelayUs / 1000}ms`,
        model: "fp16_in8",
        maxBatchSize,
        instanceCount,
        queueDelayUs,
        preferredBatchSizes: [],
      })),
    ),
  );
}

const descending = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => b - a);
