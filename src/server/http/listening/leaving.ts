import { type AnswerGate, answering, type HeldAnswer, isSilent } from "../../../kernel/answer-gate.ts";
import { AppError, clusterRefusal } from "../../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";

const READING: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export type Answering<Asked extends Request = Request> = (request: Asked) => MaybePromise<Response>;

/**
 * Returns a handler whose answers leave when the gate lets them, and those that have taken a right away when no node uses it any more;
 * without a gate, the handler itself. [CLU42] [CLU45]
 */
export function leaving<Asked extends Request>(
  handle: Answering<Asked>,
  { gate, failure }: { gate: AnswerGate | null; failure: (cause: unknown, request: Request) => Response },
): Answering<Asked> {
  if (gate === null) return handle;
  return (request) => {
    const answer: HeldAnswer = { hasRevoked: false, durable: null };
    return chain(answering(answer, handle, request), (response) => {
      const isDurable = answer.durable === request;
      const wait = isSilent(response) ? null : isDurable ? gate.lease() : gate.wait();
      if (wait === null && !answer.hasRevoked) return response;
      const left = (wait ?? Promise.resolve()).then(() => (answer.hasRevoked ? gate.everywhere() : undefined));
      return left.then(
        () => response,
        (cause: unknown) => {
          void response.body?.cancel().catch(() => {});
          return failure(refusalOf(cause, request), request);
        },
      );
    });
  };
}

/** A request that may have changed something is not told that it has not. */
function refusalOf(cause: unknown, { method }: Request): unknown {
  const isOfCluster = cause instanceof AppError && cause.data?.["cluster"] !== undefined;
  return isOfCluster && !READING.has(method) ? clusterRefusal("unknown_outcome", cause) : cause;
}
