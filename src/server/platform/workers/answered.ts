import { RequestTrace } from "../../../kernel/observing/request-trace.ts";
import type { ServiceKeys } from "../../access/keys/service-keys.ts";
import { ANONYMOUS, type Principal } from "../../access/principal.ts";
import type { Answered } from "../../http/exchange/request-context.ts";
import type { WorkerAnswer } from "./messages.ts";

const ANY_URL = "http://localhost/";
/** Requests of answers of which nobody asks for the URL, by method. */
const ANY_READS: Readonly<Record<string, Request>> = {
  GET: new Request(ANY_URL),
  HEAD: new Request(ANY_URL, { method: "HEAD" }),
};

/** Returns an answer of a worker as this process counts its own, and notes the use of its key. */
export function answeredByWorker(
  { requestId, route, params, method, status, durationMs, userId, key, request }: WorkerAnswer,
  serviceKeys: Pick<ServiceKeys, "use">,
): Answered {
  const requester = { requestId, address: () => request?.address ?? "" };
  return {
    request: (request === null ? ANY_READS[method] : null) ?? new Request(request?.url ?? ANY_URL, { method }),
    requestId,
    route,
    params,
    status,
    durationMs,
    principal: (key === null ? null : serviceKeys.use(key)) ?? (userId === null ? ANONYMOUS : userNamed(userId)),
    trace: request === null ? null : new RequestTrace(requester, performance.now() - durationMs),
  };
}

/** Returns a user of whom only the id is asked: for the request log. */
const userNamed = (id: string): Principal => ({
  kind: "user",
  sessionId: "",
  tokenVersion: 0,
  auth: {
    id,
    email: null,
    emailVerified: false,
    phone: null,
    role: "",
    isAnonymous: false,
    custom: {},
    invitation: null,
  },
});
