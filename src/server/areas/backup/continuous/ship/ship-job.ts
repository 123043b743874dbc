import { systemClock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { systemIds } from "../../../../../kernel/ids.ts";
import { serveJobs } from "../../../../db/processes/program.ts";
import { Displaced, ForeignPlace, WeakStore } from "../store/owner.ts";
import { partsOf } from "./disk.ts";
import { type PassRequest, Shipper } from "./shipper.ts";

/** Why a pass has failed: another server has the place, the store is none for it, or anything else, which may pass. */
export interface PassFailure {
  kind: "foreign" | "displaced" | "weak" | "other";
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
      return { kind: kindOf(cause), message: reasonOf(cause) };
    },
  });
}

function kindOf(cause: unknown): PassFailure["kind"] {
  if (cause instanceof Displaced) return "displaced";
  if (cause instanceof ForeignPlace) return "foreign";
  return cause instanceof WeakStore ? "weak" : "other";
}
