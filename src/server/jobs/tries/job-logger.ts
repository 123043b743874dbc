import type { Logger } from "../../../kernel/logger.ts";

type Facts = Record<string, unknown>;

/** A logger that adds the job's name and id to each entry. Whatever a job logs, this does not fail. */
export function jobLogger(logger: Logger, { name, id }: { name: string; id: string }): Logger {
  const withJob = (facts: Facts | undefined): Facts => {
    const own = { job: name, id };
    try {
      return { ...own, ...facts };
    } catch {
      return { ...own, facts: "cannot be read" };
    }
  };
  return {
    info: (message, facts) => logger.info(message, withJob(facts)),
    warn: (message, facts) => logger.warn(message, withJob(facts)),
    error: (message, facts) => logger.error(message, withJob(facts)),
  };
}
