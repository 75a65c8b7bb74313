/**
 * Deterministic random numbers in independent streams: the same (seed, stream) gives the same numbers on every machine.
 * Generator: sfc32 (Doty-Humphrey, PractRand); its state is filled by the 32-bit finalizer of MurmurHash3 over all parts of the
 * key, so that neighbouring seeds and streams have nothing in common.
 */
export class RandomStream {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  /**
   * @param seed any safe integer
   * @param stream what the numbers are for, e.g. (purpose, worker); every combination is a stream of its own
   * @throws RangeError if a part of the key is no safe integer
   */
  constructor(seed: number, ...stream: readonly number[]) {
    let hash = 0x9e3779b9;
    for (const part of [seed, ...stream]) {
      if (!Number.isSafeInteger(part)) throw new RangeError(`seed and stream must be integers, got ${part}`);
      hash = mix(hash ^ (part >>> 0));
      hash = mix((hash + Math.floor(part / 2 ** 32)) | 0);
    }
    this.a = mix(hash ^ 0x243f6a88);
    this.b = mix(hash ^ 0x85a308d3);
    this.c = mix(hash ^ 0x13198a2e);
    for (let round = 0; round < 12; round++) this.next32();
  }

  /** Uniform in [0, 1), 53 bits. */
  uniform(): number {
    const high = this.next32() >>> 5;
    const low = this.next32() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** Exponential with mean 1; finite and > 0. */
  exponential(): number {
    return -Math.log(1 - this.uniform()) || Number.MIN_VALUE;
  }

  private next32(): number {
    const sum = (this.a + this.b + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    return sum;
  }
}

function mix(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** Purposes of random streams: each draws its own numbers from the one seed. */
export const randomStreams = { poisson: 1, think: 2 } as const;
