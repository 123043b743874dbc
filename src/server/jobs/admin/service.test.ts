import { expect, test } from "bun:test";
import { nextTurn, Scheduler } from "../../../kernel/time/scheduler.ts";
import { SERVER } from "../../access/principal.ts";
import type { QueueCore } from "../queue/core.ts";
import type { JobRecords } from "./records.ts";
import { createJobsService } from "./service.ts";

const LIST_MS = 4;

test("[JB30] lists that come at once are read over several turns of the event loop", async () => {
  let now = 0;
  let read = 0;
  const records = {
    list() {
      now += LIST_MS;
      read += 1;
      return { jobs: [`{"id":"${read}"}`], next: null };
    },
  };
  const service = createJobsService({
    core: {} as QueueCore, // lists of the server look at records only
    records: records as unknown as JobRecords,
    schedules: { view: () => [], runNow: () => null },
    isDeclared: () => false,
    enqueue: async () => "",
    turns: new Scheduler({ now: () => now }),
    audit: async () => {},
  });
  const lists = Array.from({ length: 20 }, () => Promise.resolve(service.list(SERVER, () => ({}))));
  const perTurn: number[] = [];
  for (let before = 0; read < lists.length; before = read) {
    await nextTurn();
    perTurn.push(read - before);
  }
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(4);
  expect(await Promise.all(lists)).toEqual(lists.map((_, n) => `{"jobs":[{"id":"${n + 1}"}],"cursor":null}`));
});
