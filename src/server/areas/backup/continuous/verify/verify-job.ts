import { systemClock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { serveJobs } from "../../../../db/processes/program.ts";
import { openStore, type StorePlace } from "../store/store.ts";
import { verifyContinuous } from "./verify.ts";

export interface VerifyRequest {
  dataDirectory: string;
  to: StorePlace;
}

/** Starts the program of the process that verifies a continuous backup. */
export function start(): void {
  serveJobs<VerifyRequest>({
    run: ({ dataDirectory, to }) =>
      verifyContinuous({
        store: openStore(to, systemClock),
        dataDirectory,
        clock: systemClock,
        // The server ends the process to cancel it.
        signal: new AbortController().signal,
      }),
    failureOf: reasonOf,
  });
}
