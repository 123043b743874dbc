import type { Clock } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";
import { CALL_TIMEOUT_MS, CALLS_AT_ONCE_MAX, RETRY_AFTER_MAX_MS, RETRY_DELAYS_MS } from "../limits.ts";
import { isUnreachable } from "../providers/provider-answer.ts";
import { isSubscription } from "../providers/web-push-request.ts";
import type { CallResult, Message, Outcome, Provider, Target } from "../types.ts";
import { createOutages } from "./outages.ts";
import { createSlots } from "./slots.ts";

/** One message to one device, tried until it is decided. */
export interface Deliveries {
  /** Whether any provider is configured. */
  readonly isConfigured: boolean;
  /** Never rejects: what went wrong is in the outcome. */
  deliver(target: Target, message: Message): Promise<Outcome>;
  /** The same, and where the service is out it waits for it, within bounds; `onWaiting` is called then. [PU100] */
  deliverPatiently(target: Target, message: Message, onWaiting: () => void): Promise<Outcome>;
  /** Ends the calls under way, which have failed then. */
  giveUp(reason: Error): void;
}

/**
 * At most 50 calls at once in the whole server, 10 s each, and two more tries after a 429 or 5xx; a pause between tries
 * keeps no other call waiting. Once `stopping` is aborted nothing is begun any more. Decisions 11.
 */
export function createDeliveries(deps: {
  /** null: not configured. */
  fcm: Provider | null;
  webPush: Provider | null;
  clock: Clock;
  stopping: AbortSignal;
}): Deliveries {
  const { clock, stopping } = deps;
  const underWay = new Set<AbortController>();
  const slots = createSlots(CALLS_AT_ONCE_MAX);

  const call = async (provider: Provider, target: Target, message: Message): Promise<CallResult> => {
    if (stopping.aborted) return { kind: "failed", error: "The server stopped before this was sent" };
    const controller = new AbortController();
    const timeout = new Error(`No answer within ${CALL_TIMEOUT_MS / SECOND_MS} s`);
    const cancelTimeout = clock.after(CALL_TIMEOUT_MS, () => controller.abort(timeout));
    underWay.add(controller);
    try {
      return await unlessAborted(controller.signal, provider.send(target, message, controller.signal));
    } catch (cause) {
      const error = cause instanceof Error ? cause.message : String(cause);
      return { kind: cause === timeout || isUnreachable(cause) ? "unreachable" : "failed", error };
    } finally {
      underWay.delete(controller);
      cancelTimeout();
    }
  };

  /** Ends early when the server stops: the next try then says so. */
  const pause = (delayMs: number): Promise<void> =>
    new Promise((resume) => {
      const done = (): void => {
        cancel();
        stopping.removeEventListener("abort", done);
        resume();
      };
      const cancel = clock.after(delayMs, done);
      stopping.addEventListener("abort", done);
      if (stopping.aborted) done();
    });

  const attempt = async (provider: Provider, target: Target, message: Message): Promise<CallResult> => {
    let result = await slots.run(() => call(provider, target, message));
    for (const delayMs of RETRY_DELAYS_MS) {
      if (result.kind !== "busy") break;
      await pause(Math.min(result.retryAfterMs ?? delayMs, RETRY_AFTER_MAX_MS));
      result = await slots.run(() => call(provider, target, message));
    }
    return result;
  };
  const outages = createOutages(clock, stopping);
  const attemptPatiently = async (
    provider: Provider,
    target: Target,
    message: Message,
    onWaiting: () => void,
  ): Promise<CallResult> => {
    const site = provider.siteOf(target);
    let last: CallResult = { kind: "failed", error: "The push service has not answered for a while" };
    for (;;) {
      if (outages.isPaused(site)) onWaiting();
      if (!(await outages.turn(site))) return last;
      const result = await attempt(provider, target, message);
      if (result.kind !== "unreachable" && result.kind !== "busy") {
        outages.answered(site);
        return result;
      }
      outages.failed(site);
      last = result;
    }
  };
  /** `send` gets the provider of the target. */
  const deliverBy = async (target: Target, send: (provider: Provider) => Promise<CallResult>): Promise<Outcome> => {
    const isWebPush = target.platform === "web" && isSubscription(target.token);
    const provider = isWebPush ? deps.webPush : deps.fcm;
    if (provider !== null) return outcomeOf(target, await send(provider));
    return { target, status: "failed", error: `${isWebPush ? "Web Push" : "FCM"} is not configured` };
  };

  return {
    isConfigured: deps.fcm !== null || deps.webPush !== null,
    deliver: (target, message) => deliverBy(target, (provider) => attempt(provider, target, message)),
    deliverPatiently: (target, message, onWaiting) =>
      deliverBy(target, (provider) => attemptPatiently(provider, target, message, onWaiting)),
    giveUp(reason) {
      for (const controller of underWay) controller.abort(reason);
    },
  };
}

function outcomeOf(target: Target, result: CallResult): Outcome {
  if (result.kind === "sent") return { target, status: "sent", error: null };
  if (result.kind === "held") return { target, status: "sent", error: result.note };
  return { target, status: result.kind === "unregistered" ? "removed" : "failed", error: result.error };
}

/** What a provider does with the signal is its own affair: the time is over all the same. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
