import pLimit from "p-limit";
import type { Clock } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { CALL_TIMEOUT_MS, CALLS_AT_ONCE_MAX, RETRY_AFTER_MAX_MS, RETRY_DELAYS_MS } from "../limits.ts";
import { type CallResult, type Message, type Outcome, outcomeOf, type Provider, type Target } from "../message.ts";
import { isUnreachable } from "../providers/provider-answer.ts";
import { isSubscription } from "../providers/web-push.ts";
import { Outages } from "./outages.ts";

interface Waiting {
  patience: AbortSignal;
  onWaiting: () => void;
}

/** Sends one message to one device, with retries, until the result is known. */
export type Deliveries = ReturnType<typeof createDeliveries>;

/**
 * Bounds calls and retries them [PU17] [PU18]; a pause between attempts does not occupy a call. After an abort of `stopping`
 * no further calls are started.
 */
export function createDeliveries(deps: {
  /** null: not configured. */
  fcm: Provider | null;
  webPush: Provider | null;
  clock: Clock;
  stopping: AbortSignal;
}) {
  const { clock, stopping } = deps;
  /** Functions that settle the running calls early. */
  const running = new Set<(reason: Error, kind: "failed" | "unreachable") => void>();
  const slots = pLimit(CALLS_AT_ONCE_MAX);

  const call = (provider: Provider, target: Target, message: Message): Promise<CallResult> => {
    if (stopping.aborted) {
      return Promise.resolve({ kind: "failed", error: "The server stopped before this was sent" });
    }
    return new Promise((resolve) => {
      const controller = new AbortController();
      const settle = (result: CallResult): void => {
        running.delete(end);
        cancelTimeout();
        resolve(result);
      };
      /** Settles even if the provider ignores the signal. */
      const end = (reason: Error, kind: "failed" | "unreachable"): void => {
        settle({ kind, error: reason.message });
        controller.abort(reason);
      };
      const cancelTimeout = clock.after(CALL_TIMEOUT_MS, () => {
        end(new Error(`No answer within ${CALL_TIMEOUT_MS / SECOND_MS} s`), "unreachable");
      });
      running.add(end);
      provider.send(target, message, controller.signal).then(settle, (cause: unknown) => {
        settle({ kind: isUnreachable(cause) ? "unreachable" : "failed", error: reasonOf(cause) });
      });
    });
  };

  /** Ends early when the server stops; the next attempt then fails with that reason. */
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
    let result = await slots(() => call(provider, target, message));
    for (const delayMs of RETRY_DELAYS_MS) {
      if (result.kind !== "busy") break;
      await pause(Math.min(result.retryAfterMs ?? delayMs, RETRY_AFTER_MAX_MS));
      result = await slots(() => call(provider, target, message));
    }
    return result;
  };
  const outages = new Outages(clock, stopping);
  const attemptPatiently = async (
    provider: Provider,
    target: Target,
    message: Message,
    { patience, onWaiting }: Waiting,
  ): Promise<CallResult> => {
    const site = provider.siteOf(target);
    let last: CallResult = { kind: "failed", error: "The push service has not answered for a while" };
    for (;;) {
      if (outages.isPaused(site)) onWaiting();
      if (!(await outages.turn(site, patience))) return last;
      const result = await attempt(provider, target, message);
      if (result.kind !== "unreachable" && result.kind !== "busy") {
        outages.answered(site);
        return result;
      }
      outages.failed(site);
      last = result;
    }
  };
  /** Calls `send` with the provider of the target. */
  const deliverBy = async (target: Target, send: (provider: Provider) => Promise<CallResult>): Promise<Outcome> => {
    const isWebPush = target.platform === "web" && isSubscription(target.token);
    const provider = isWebPush ? deps.webPush : deps.fcm;
    if (provider !== null) return outcomeOf(target, await send(provider));
    return { target, status: "failed", error: `${isWebPush ? "Web Push" : "FCM"} is not configured` };
  };

  return {
    /** Whether at least one provider is configured. */
    isConfigured: deps.fcm !== null || deps.webPush !== null,
    /** Sends the message. Never rejects: failures are in the outcome. */
    deliver: (target: Target, message: Message): Promise<Outcome> =>
      deliverBy(target, (provider) => attempt(provider, target, message)),
    /** Sends, but waits while the service is unavailable, until `patience` is aborted, and calls `onWaiting` then. [PU100] */
    deliverPatiently: (target: Target, message: Message, waiting: Waiting): Promise<Outcome> =>
      deliverBy(target, (provider) => attemptPatiently(provider, target, message, waiting)),
    /** Ends all running calls as failed. */
    giveUp(reason: Error): void {
      for (const end of [...running]) end(reason, "failed");
    },
  };
}
