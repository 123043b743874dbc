/** A problem of a config, and its path. */
export interface ConfigProblem {
  /** The path, its members joined by dots, such as `databases.shared.tables.posts.schema.title.type`; empty for the whole config. */
  path: string;
  message: string;
}

export const formatProblem = ({ path, message }: ConfigProblem): string =>
  path === "" ? `the config ${message}` : `${path}: ${message}`;

/** The error of an invalid config. `problems` is empty when its file could not be loaded. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly ConfigProblem[];

  constructor(message: string, problems: readonly ConfigProblem[] = [], cause?: unknown) {
    super([message, ...problems.map((problem) => `  ${formatProblem(problem)}`)].join("\n"), { cause });
    this.problems = problems;
  }
}
