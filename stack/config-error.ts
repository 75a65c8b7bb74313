/** One thing that is wrong with the configuration. */
export interface ConfigProblem {
  /** Key without the project's prefix. */
  readonly key: string;
  /** What is wrong and how to fix it. */
  readonly message: string;
}

/** Everything that is wrong with the configuration, at once; nothing has been created. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ key, message }) => `  ${key}: ${message}`);
    super(
      `The stack's configuration has ${problems.length} problem${problems.length === 1 ? "" : "s"}:\n${lines.join("\n")}`,
    );
  }
}
