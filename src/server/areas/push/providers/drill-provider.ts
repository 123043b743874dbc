import type { Logger } from "../../../../kernel/logger.ts";
import type { Provider } from "../types.ts";

const NOTE = "Not sent: this server runs as a drill";

/** Accepts every message and sends none. Logs only the 1st, 10th, 100th…: a broadcast has a message for each device. */
export function createDrillProvider(logger: Logger): Provider {
  let count = 0;
  return {
    siteOf: () => "drill",
    async send() {
      if (/^10*$/.test(String(++count))) logger.warn("a drill sends no push messages: they are dropped", { count });
      return { kind: "held", note: NOTE };
    },
  };
}
