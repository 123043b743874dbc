import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import { roomBacklogMaxBytes, roomMessageMaxBytes } from "../../areas/rooms/index.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { SYSTEM_FILE } from "../../db/index.ts";
import { SharedPage } from "../../db/readers/shared-page.ts";
import { lockAsWorker } from "../../db/readers/workers-lock.ts";
import { openWorkerPort } from "../../http/listening/worker-port.ts";
import { createForwarding } from "../../http/workers/forwarding.ts";
import { listenAsWorker } from "../../http/workers/worker-listener.ts";
import { BACKPRESSURE_MAX_BYTES, FRAME_MAX_BYTES } from "../../sockets/limits.ts";
import { createAnswering } from "./answering.ts";
import type { FromWorker, ToWorker, WorkerOrder } from "./messages.ts";
import { createReports } from "./reports.ts";
import { giveSigns } from "./signs.ts";

/** Runs a worker: resolves when the main process has stopped it, and what it had begun is answered. Errors: it cannot listen. */
export async function runWorker(
  config: PlatformConfig,
  order: WorkerOrder,
  channel: { send(message: FromWorker): void; listen(onMessage: (message: ToWorker) => void): void },
): Promise<void> {
  const clock = systemClock;
  const lock = lockAsWorker(order.dataDirectory);
  const page = new SharedPage(order.page, { apart: join(order.dataDirectory, SYSTEM_FILE) });
  const answers = createReports(clock, (batch) => channel.send({ kind: "answers", answers: batch }));
  const answer = await createAnswering(config, {
    order,
    page,
    onAnswer: answers.add,
    lending: {
      ask: (namespace, instanceId) => channel.send({ kind: "ask", namespace, instanceId }),
      returned: (id) => channel.send({ kind: "returned", id }),
    },
  });
  const forwarding = createForwarding(order.main);
  const listener = listenAsWorker({
    ...order,
    clock,
    forwarding,
    link: forwarding.link,
    isShared: true,
    openPort: openWorkerPort,
    answer,
    failure: unanswered,
    messageMaxBytes: Math.max(FRAME_MAX_BYTES, roomMessageMaxBytes(config.rooms ?? {})),
    waitingMaxBytes: Math.max(BACKPRESSURE_MAX_BYTES, roomBacklogMaxBytes(config.rooms ?? {})),
  });
  const endSigns = giveSigns(clock, {
    requests: () => answers.count + listener.forwarded,
    give: (sign) => page.write(order.main.worker, { ...sign, answered: answers.count, forwarded: listener.forwarded }),
    rest() {
      answer.rest();
      Bun.gc(true);
      Bun.shrink();
    },
  });
  await new Promise<void>((resolve) => {
    channel.listen((message) => {
      const held = message.kind === "hold" ? forwarding.underWay(message.id) : undefined;
      if (message.kind === "hold" && held !== undefined) listener.hold(held, message.isHeld);
      if (message.kind === "shed") listener.shed(message.share);
      if (message.kind === "renew") listener.renew(message.certificate);
      if (message.kind === "lend") answer.instances?.lent(message.id, message.path);
      if (message.kind === "recall") answer.instances?.recall(message.id);
      if (message.kind === "stop") resolve();
    });
    channel.send({ kind: "ready" });
  });
  await listener.stop();
  answers.flush();
  endSigns();
  lock.close();
}

/** Answers where the main process does not. */
function unanswered(): Response {
  const { status, message, headers } = new AppError(503, "The server cannot answer now", { headers: RETRY_AFTER });
  return Response.json({ code: status, message }, { status, headers: headers ?? {} });
}

const RETRY_AFTER = { "retry-after": "1" };
