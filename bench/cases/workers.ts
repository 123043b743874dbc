import type { Running } from "../support/processes.ts";
import { ownProcessorTime, processorTime } from "../support/processor-time.ts";
import { quantile } from "../support/statistics.ts";

/** Subscribers of one table's changes, and changes. */
export const SUBSCRIBERS = 3_000;
const OPENED_TOGETHER = 50;
const CHANGES = 20;
const PAUSE_MS = 100;
const WAIT_MAX_MS = 20_000;

export const FAN_OUT_CONFIG = (workers: number): string => `export default {
  server: { workers: ${workers} },
  databases: { shared: { tables: { notes: { access: { read: true, insert: true } } } } },
};
`;

export interface FanOut {
  /** Milliseconds from the request that makes a change until a subscriber has it. */
  p50: number;
  p99: number;
  /** Processor time for one change, in microseconds: of all processes, and of the main one. */
  allUs: number;
  mainUs: number;
}

/** Opens the subscribers, and measures how changes reach them. */
export async function measureFanOut(server: Running): Promise<FanOut> {
  const delays: number[] = [];
  let sentAt = 0;
  const open = (): Promise<WebSocket> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/realtime`);
      socket.onopen = () => socket.send(JSON.stringify({ type: "auth", anonymous: true }));
      socket.onerror = () => reject(new Error("a WebSocket cannot be opened"));
      socket.onmessage = ({ data }) => {
        const text = String(data);
        if (text.startsWith('{"type":"db_change"')) delays.push(performance.now() - sentAt);
        else if (text.startsWith('{"type":"auth_success"'))
          socket.send(JSON.stringify({ type: "subscribe", channel: "realtime:shared:notes" }));
        else if (text.startsWith('{"type":"subscribed"')) resolve(socket);
        else if (text.startsWith('{"type":"error"')) reject(new Error(text));
      };
    });
  const sockets: WebSocket[] = [];
  for (let opened = 0; opened < SUBSCRIBERS; opened += OPENED_TOGETHER) {
    sockets.push(...(await Promise.all(Array.from({ length: OPENED_TOGETHER }, open))));
  }
  const before = { all: processorTime(server.pid), main: ownProcessorTime(server.pid) };
  for (let change = 1; change <= CHANGES; change++) {
    sentAt = performance.now();
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ text: `change ${change}` });
    const { status } = await fetch(`${server.url}/api/db/shared/tables/notes`, { method: "POST", headers, body });
    if (status !== 201) throw new Error(`an insert was answered ${status}`);
    while (delays.length < change * SUBSCRIBERS) {
      if (performance.now() - sentAt > WAIT_MAX_MS) throw new Error(`${delays.length} changes have arrived`);
      await Bun.sleep(1);
    }
    await Bun.sleep(PAUSE_MS);
  }
  const after = { all: processorTime(server.pid), main: ownProcessorTime(server.pid) };
  for (const socket of sockets) socket.close();
  return {
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    allUs: (after.all - before.all) / CHANGES,
    mainUs: (after.main - before.main) / CHANGES,
  };
}
