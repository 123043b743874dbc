import { reasonOf } from "../../../../kernel/errors.ts";
import { serveJobs } from "../../../db/processes/program.ts";
import { type HashWork, hashNow } from "./hashing.ts";

/** The program of hashes beside those on threads: it gives way to the server. */
export function start(): void {
  serveJobs<HashWork>({
    run: (work) => hashNow(work),
    failureOf: reasonOf,
  });
}
