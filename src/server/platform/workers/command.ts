/** The command that runs a worker; the help omits it. */
export const WORKER_COMMAND = "worker";
