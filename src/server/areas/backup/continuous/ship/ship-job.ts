import { systemClock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { systemIds } from "../../../../../kernel/ids.ts";
import { serveJobs } from "../../../../db/processes/program.ts";
import { Displaced, ForeignPlace } from "../store/owner.ts";
import { partsOf } from "./disk.ts";
import { type PassRequest, Shipper } from "./shipper.ts";

/** Why a pass has failed: another server has the place, or anything else, which may pass. */
export interface PassFailure {
  kind: "foreign" | "displaced" | "other";
  message: string;
}

let shipper: Shipper | null = null;

/** Starts the program of the process that stores a continuous backup. It serves one server, and remembers what it has read. */
export function start(): void {
  serveJobs<PassRequest>({
    async run(request) {
      shipper ??= await Shipper.open(request, {
        ...partsOf(request.settings, systemClock),
        clock: systemClock,
        ids: systemIds,
      });
      return shipper.pass(request);
    },
    failureOf(cause): PassFailure {
      const kind = cause instanceof Displaced ? "displaced" : cause instanceof ForeignPlace ? "foreign" : "other";
      return { kind, message: reasonOf(cause) };
    },
  });
}
