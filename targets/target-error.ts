/** A target that cannot be used as it was asked for. The message names it and says what to do. */
export class TargetError extends Error {
  override readonly name = "TargetError";
}
