/** Waiting for one server that a few customers share, from how busy it is. Pure. */

/**
 * Mean wait of a customer before service, milliseconds, in a system of so many customers who come back after a time of their own: the
 * finite-source queue M/M/1//N ("machine repairman", e.g. Kleinrock, Queueing Systems I, 3.8). What their own time is follows from the
 * utilisation. Times that vary less than exponential ones wait less.
 * @param customers 0 or 1: nobody is in the way
 * @param busy share of the time that the server works, 0..1
 */
export function finiteSourceWaitMs(customers: number, serviceMs: number, busy: number): number {
  if (customers <= 1 || serviceMs <= 0 || busy <= 0) return 0;
  const utilisation = Math.min(busy, mostBusy);
  // ln of service time over own time.
  let [low, high] = [Math.log(1e-6), Math.log(1e6)];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (utilisationOf(customers, Math.exp(middle)) < utilisation) low = middle;
    else high = middle;
  }
  const ownMs = serviceMs / Math.exp((low + high) / 2);
  // Little's law over the whole cycle.
  return Math.max(0, (customers * serviceMs) / utilisation - ownMs - serviceMs);
}

/**
 * Waits are shorter than those by exponential phases by about the mean of the phases' squared coefficients of variation (Kingman); phases on
 * a GPU server vary by a half or less.
 */
export const usualVariability = 0.25;

/** Nearer to 1 the own time cannot be told. */
const mostBusy = 0.999;

/** 1 - p0 of the finite-source queue. */
function utilisationOf(customers: number, ratio: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 0; k < customers; k++) {
    term *= (customers - k) * ratio;
    sum += term;
  }
  return 1 - 1 / sum;
}
