import { systemClock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { systemIds } from "../../../../../kernel/ids.ts";
import { serveJobs } from "../../../../db/processes/program.ts";
import { COLLECT_BYTES } from "../limits.ts";
import { Displaced, ForeignPlace, WeakStore } from "../store/owner.ts";
import { partsOf } from "./disk.ts";
import { type PassRequest, Shipper } from "./shipper.ts";

/** Why a pass has failed: another server has the place, the store is none for it, or anything else, which may pass. */
export interface PassFailure {
  kind: "foreign" | "displaced" | "weak" | "other";
  message: string;
}

let shipper: Shipper | null = null;
/** Bytes of records since memory was last collected. */
let takenBytes = 0;

/** Starts the program of the process that stores a continuous backup. It serves one server, and remembers what it has read. */
export function start(): void {
  serveJobs<PassRequest>({
    async run(request) {
      shipper ??= await Shipper.open(request, {
        ...partsOf(request.settings, systemClock),
        clock: systemClock,
        ids: systemIds,
      });
      const answer = await shipper.pass(request);
      takenBytes += request.files.reduce((sum, { bytes }) => sum + bytes, 0);
      // The engine knows little of memory outside its heap, and would let it grow to three times as much.
      if (takenBytes >= COLLECT_BYTES) {
        Bun.gc(true);
        takenBytes = 0;
      }
      return answer;
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
