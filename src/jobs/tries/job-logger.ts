import type { Logger } from "../../kernel/logger.ts";

/** A logger that adds the job's name and id to each entry. */
export function jobLogger(logger: Logger, { name, id }: { name: string; id: string }): Logger {
  return {
    info: (message, facts) => logger.info(message, { job: name, id, ...facts }),
    warn: (message, facts) => logger.warn(message, { job: name, id, ...facts }),
    error: (message, facts) => logger.error(message, { job: name, id, ...facts }),
  };
}
