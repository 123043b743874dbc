import type { Logger } from "../../../kernel/logger.ts";
import { callerNameOf } from "../../access/principal.ts";
import type { AnswerListener } from "./request-context.ts";

/** Logs a line per answer. The query is left out: it may contain the token of a signed URL. [HT303] */
export function createAccessLog(deps: { logger: Logger; addressOf(request: Request): string }): AnswerListener {
  return ({ request, status, durationMs, principal, trace }) => {
    const address = trace?.requester.address() ?? deps.addressOf(request);
    deps.logger.info("request", {
      method: request.method,
      path: new URL(request.url).pathname,
      status,
      ms: Math.round(durationMs * 1000) / 1000,
      address,
      caller: principal.kind === "anonymous" ? null : callerNameOf(principal, () => address),
    });
  };
}
