/**
 * Seeded pseudo-random numbers: xoshiro128++ (Blackman and Vigna, 2019, public domain), seeded by splitmix32.
 * The same seed gives the same sequence on every machine.
 */
export class Random {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  constructor(seed: number) {
    // Both halves count, so that seeds beyond 32 bits and negative ones differ too.
    let state = (Math.trunc(seed) ^ (Math.floor(seed / 4294967296) * 0x9e3779b9)) | 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return (z ^ (z >>> 15)) | 0;
    };
    this.a = next();
    this.b = next();
    this.c = next();
    this.d = next() | 1;
  }

  /** Uniform over the 32-bit integers from 0. */
  nextUint32(): number {
    const sum = (this.a + this.d) | 0;
    const result = (((sum << 7) | (sum >>> 25)) + this.a) >>> 0;
    const t = this.b << 9;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= t;
    this.d = (this.d << 11) | (this.d >>> 21);
    return result;
  }

  /** Uniform in (0, 1): never 0, so that its logarithm is finite. */
  nextUnit(): number {
    return (this.nextUint32() + 0.5) * 2.3283064365386963e-10;
  }

  /** Exponential with mean 1. */
  nextExponential(): number {
    return -Math.log(this.nextUnit());
  }

  /** Normal with mean 0 and standard deviation 1 (Box-Muller, one of the pair). */
  nextNormal(): number {
    return Math.sqrt(-2 * Math.log(this.nextUnit())) * Math.cos(2 * Math.PI * this.nextUnit());
  }
}
