import { type AnswerGate, answering, type HeldAnswer } from "../../kernel/answer-gate.ts";
import { isPromise } from "../../kernel/maybe-promise.ts";
import type { AppAccess } from "../config/app/index.ts";

/**
 * Wraps the server's own access, so that whatever it gives asynchronously, errors too, comes when it may leave: code of the config may
 * tell it to anybody. What a rule or transaction gets at once has no way out before its own end. [CLU43]
 */
export function gatedApp(app: AppAccess, gate: AnswerGate): AppAccess {
  // The proxy of an object of the same interface.
  return gated(app, gate) as AppAccess;
}

function gated(access: object, gate: AnswerGate): object {
  const of = (value: unknown, answer: HeldAnswer): unknown => {
    if (isPromise(value)) return whenItMay(value, answer, gate);
    return typeof value === "object" && value !== null ? gated(value, gate) : value;
  };
  // Not of `access` itself, which is frozen: a proxy may not give anything else for its members.
  const proxy: object = new Proxy(
    {},
    {
      get: (_, name) => {
        const member: unknown = Reflect.get(access, name, access);
        if (typeof member !== "function") return of(member, { hasRevoked: false, durable: null });
        return (...args: readonly unknown[]) => {
          const answer: HeldAnswer = { hasRevoked: false, durable: null };
          return of(
            answering(answer, () => Reflect.apply(member, access, args)),
            answer,
          );
        };
      },
      has: (_, name) => Reflect.has(access, name),
      ownKeys: () => [],
      // Hooks get an object that inherits from it, with members of their own.
      set: (_, name, value, receiver) =>
        receiver !== proxy &&
        Reflect.defineProperty(receiver, name, { value, writable: true, enumerable: true, configurable: true }),
    },
  );
  return proxy;
}

async function whenItMay<T>(promise: PromiseLike<T>, answer: HeldAnswer, gate: AnswerGate): Promise<T> {
  try {
    return await promise;
  } finally {
    await gate.wait();
    if (answer.hasRevoked) await gate.everywhere();
  }
}
