import { serveJobs } from "../../db/processes/program.ts";
import { type ScanRequest, scanSome } from "./scan-files.ts";

/** Starts the program of the process that scans for instance files with waiting rows. [TG9] */
export function start(): void {
  serveJobs<ScanRequest>({ run: scanSome, failureOf: String });
}
