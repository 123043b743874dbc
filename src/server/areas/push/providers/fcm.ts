import type { Clock } from "../../../../kernel/clock.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { type OutgoingAnswer, outgoingCall } from "../../../http/outgoing/call.ts";
import { ANSWER_MAX_BYTES } from "../limits.ts";
import type { CallResult, Provider } from "../types.ts";
import { createAccessTokens, type ServiceAccount, TokenRefused } from "./access-tokens.ts";
import { createFcmBodies } from "./fcm-message.ts";
import { isBusy, retryAfterMs } from "./provider-answer.ts";

const UNAUTHENTICATED = 401;
/** FCM is one service. The slash keeps it apart from host names. */
const SITE = "fcm/";

/** Firebase Cloud Messaging, HTTP v1. `endpoint` is the part before `/v1/projects/…/messages:send`. */
export function createFcm(deps: {
  projectId: string;
  account: ServiceAccount;
  endpoint: string;
  tokenEndpoint: string;
  clock: Clock;
}): Provider {
  const { clock } = deps;
  const url = `${deps.endpoint.replace(/\/+$/, "")}/v1/projects/${encodeURIComponent(deps.projectId)}/messages:send`;
  const tokens = createAccessTokens({ account: deps.account, endpoint: deps.tokenEndpoint, clock });

  const post = async (body: string, signal: AbortSignal): Promise<OutgoingAnswer> => {
    const token = await tokens.get();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await outgoingCall(url, { method: "POST", headers, body, signal });
    if (response.status === UNAUTHENTICATED) tokens.forget(token);
    return response;
  };

  const bodyOf = createFcmBodies();

  return {
    siteOf: () => SITE,
    async send(target, message, signal) {
      const body = bodyOf(target, message, clock.now());
      try {
        let response = await post(body, signal);
        // The token may have been revoked: try once with a new one.
        if (response.status === UNAUTHENTICATED) {
          response.drop();
          response = await post(body, signal);
        }
        return await resultOf(response, clock.now());
      } catch (cause) {
        if (!(cause instanceof TokenRefused)) throw cause;
        const { status, headers, message: error } = cause;
        return isBusy(status)
          ? { kind: "busy", error, retryAfterMs: retryAfterMs(headers, clock.now()) }
          : { kind: "failed", error };
      }
    },
  };
}

async function resultOf(response: OutgoingAnswer, nowMs: number): Promise<CallResult> {
  if (response.ok) {
    // What it says is not needed; read, so that the connection serves the next message.
    await response.read({ maxBytes: ANSWER_MAX_BYTES });
    return { kind: "sent" };
  }
  const whole = await response.whole({ maxBytes: ANSWER_MAX_BYTES }).catch(() => null);
  const answer: unknown = await whole?.json().catch(() => null);
  const problem = isJsonObject(answer) && isJsonObject(answer["error"]) ? answer["error"] : {};
  const code = errorCode(problem);
  const text = typeof problem["message"] === "string" ? problem["message"] : "";
  const error = `FCM answered ${[response.status, code, text].filter((part) => part !== null && part !== "").join(" ")}`;
  // Any other 404 concerns the project or the URL, not the device.
  if (response.status === 404 && code === "UNREGISTERED") return { kind: "unregistered", error };
  if (isBusy(response.status)) return { kind: "busy", error, retryAfterMs: retryAfterMs(response.headers, nowMs) };
  return { kind: "failed", error };
}

/** The FCM error code in the details of the error; null without one. */
function errorCode(problem: JsonObject): string | null {
  const details = Array.isArray(problem["details"]) ? problem["details"] : [];
  for (const detail of details) {
    if (isJsonObject(detail) && typeof detail["errorCode"] === "string") return detail["errorCode"];
  }
  return null;
}
