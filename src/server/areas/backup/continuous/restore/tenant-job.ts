import { systemClock } from "../../../../../kernel/clock.ts";
import { reasonOf } from "../../../../../kernel/errors.ts";
import { serveJobs } from "../../../../db/processes/program.ts";
import { openStore, type Store, type StorePlace } from "../store/store.ts";
import { fetchContents, NoSuchMoment, restoreTenant, type TenantMoment, type WantedContents } from "./tenant.ts";
import { readTimeline, type Timeline } from "./timeline.ts";

type Given = "store" | "signal";
export type TenantRequest =
  | ({ op: "moment"; to: StorePlace } & Omit<TenantMoment, Given>)
  | ({ op: "contents"; to: StorePlace } & Omit<WantedContents, Given>)
  | { op: "timeline"; to: StorePlace; file: string | null };

/** Why an instance was not restored: there is none, or no such moment; or anything else. */
export interface TenantFailure {
  kind: "none" | "other";
  message: string;
}

async function timelineOf({ file }: { file: string | null }, store: Store): Promise<Timeline> {
  const timeline = await readTimeline(store, file);
  if (timeline === null) throw new NoSuchMoment(`There is no file "${file}" in the continuous backup`);
  return timeline;
}

/** Starts the program of the process that restores instances. */
export function start(): void {
  serveJobs<TenantRequest>({
    async run(request) {
      const store = openStore(request.to, systemClock);
      // The server ends the process to cancel it.
      const { signal } = new AbortController();
      if (request.op === "timeline") return timelineOf(request, store);
      if (request.op === "moment") return restoreTenant({ ...request, store, signal });
      await fetchContents({ ...request, store, signal });
      return null;
    },
    failureOf: (cause): TenantFailure => ({
      kind: cause instanceof NoSuchMoment ? "none" : "other",
      message: reasonOf(cause),
    }),
  });
}
