import { noteDurable } from "../../../../kernel/answer-gate.ts";
import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import {
  type CallerKey,
  callerKeyOf,
  IDEMPOTENCY_KEY_HEADER,
  REPLAYED,
} from "../../../http/exchange/idempotency-key.ts";
import type { BodyHash } from "../../../http/exchange/request-context.ts";
import { Reply } from "../../../http/reply.ts";
import type { TableLookups } from "../lookups/session.ts";
import type { FileAddress } from "../query/sources.ts";
import { type Namespace, readable } from "../records/namespaces.ts";
import type { RecordRights } from "../rules/access.ts";
import type { InstanceRights } from "../rules/instance-access.ts";
import type { KeepAnswer } from "../write/writes.ts";
import { findAnswer, isExpired, keepAnswer, storedKey } from "./kept-answers.ts";
import { type Answer, type AnswerShape, keptText, type ReplayPlace, replayed } from "./replay.ts";

/** A request with its caller, as compared with a repeated one. */
export interface OnceRequest {
  readonly request: Request;
  readonly principal: Principal;
  digestBody(options: { isUnread: boolean; prefix: string }): BodyHash;
}

export interface OnceOptions<T> {
  /** Address of the request. `table` is that of the path; null when each record has its own, returned by `tablesOf`. */
  address: FileAddress & { table: string | null };
  shape: AnswerShape;
  toAnswer(result: T): Answer;
  tablesOf?(result: T): readonly string[];
}

const IN_PROGRESS = "The first request with this idempotency key is still under way";

export function createOnce(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  instances: InstanceRights;
  rights: RecordRights;
  lookups: TableLookups;
  clock: Clock;
}) {
  const { rights, clock } = deps;
  /** Keys of requests in progress. At most one per request. */
  const underWay = new Set<string>();

  /** Returns the file that may have kept an answer; null when there is none. Errors: those of opening its instance. */
  const opened = async (
    principal: Principal,
    { namespace: name, instanceId, table }: OnceOptions<unknown>["address"],
  ): Promise<ReplayPlace | null> => {
    const namespace = deps.namespaces.get(name);
    if (namespace === undefined) return null;
    const { tables } = namespace;
    const asker = { principal, rules: deps.lookups.begin().scope({ namespace: name, instanceId }) };
    if (namespace.kind === "static") return { tables, file: await readable(namespace), table, asker };
    const file = await deps.instances.open(asker, namespace, instanceId);
    return file === null ? null : { tables, file, table, asker };
  };

  /**
   * Returns the same file as `opened`; null also when the caller may not open it: the request itself is refused for that, with
   * its own error.
   */
  const placeOf = async (principal: Principal, address: OnceOptions<unknown>["address"]) => {
    try {
      return await opened(principal, address);
    } catch (cause) {
      if (cause instanceof AppError && cause.status < 500) return null;
      throw cause;
    }
  };

  const withKey = async <T>(
    context: OnceRequest,
    { address, shape, toAnswer, tablesOf }: OnceOptions<T>,
    callerKey: CallerKey,
    work: (keep: KeepAnswer<T>) => Promise<T>,
  ): Promise<unknown> => {
    const { principal, request } = context;
    const place = await placeOf(principal, address);
    const name = [address.namespace, address.instanceId ?? "", callerKey.caller, callerKey.key].join("\n");
    if (underWay.has(name)) throw inProgress();
    const key = storedKey(callerKey);
    const found = place === null ? null : findAnswer(place.file, key);
    const prefix = methodAndPathOf(request);
    if (found !== null && place !== null && !isExpired(found, clock.now())) {
      const hash = context.digestBody({ isUnread: true, prefix });
      await hash.read;
      if (Buffer.compare(hash.digest(), found.request) !== 0) throw anotherRequest();
      // Rights may have ended while the body arrived. The file stays that of the answer: 404 if it was deleted since.
      const { asker } = (await opened(principal, address)) ?? place;
      const { status, body } = await replayed(rights, { ...place, asker }, found, shape);
      return new Reply(status, body, REPLAYED);
    }
    underWay.add(name);
    try {
      const hash = context.digestBody({ isUnread: false, prefix });
      const keep: KeepAnswer<T> = (tx, result) => {
        const { status, body } = toAnswer(result);
        const answer = {
          caller: callerKey.caller,
          key,
          isServiceKey: principal.kind === "serviceKey",
          former: found,
          request: hash.digest(),
          status,
          tables: tablesOf === undefined ? null : JSON.stringify(tablesOf(result)),
          answer: (options: { idsOnly: boolean }) => keptText(shape, body, options),
        };
        keepAnswer(tx, answer, clock.now());
      };
      const result = await work(keep);
      if (shape !== "counts") noteDurable(request);
      return replyOf(toAnswer(result));
    } finally {
      underWay.delete(name);
    }
  };

  return {
    /**
     * Runs `work(undefined)` without the header. With it, returns the kept answer, or runs `work` with a function that keeps its
     * answer, to be called inside its transaction. Errors: 400, 409 while the first request is in progress, 422 for another
     * request. [TB320]
     */
    async run<T>(
      context: OnceRequest,
      options: OnceOptions<T>,
      work: (keep: KeepAnswer<T> | undefined) => Promise<T>,
    ): Promise<unknown> {
      const key = context.request.headers.get(IDEMPOTENCY_KEY_HEADER);
      if (key === null) {
        const result = await work(undefined);
        if (options.shape !== "counts") noteDurable(context.request);
        return replyOf(options.toAnswer(result));
      }
      return withKey(context, options, callerKeyOf(context.principal, key), work);
    },
  };
}

/** Plain values are sent in pieces when they are large. */
const replyOf = ({ status, body }: Answer): unknown => (status === 200 ? body : new Reply(status, body));

function methodAndPathOf({ method, url }: Request): string {
  return `${method} ${url.slice(url.indexOf("/", url.indexOf("//") + 2))}\n`;
}

const inProgress = (): AppError =>
  new AppError(409, IN_PROGRESS, {
    data: { idempotencyKey: { code: "idempotency_in_progress", message: IN_PROGRESS } },
    headers: { "retry-after": "1" },
  });

function anotherRequest(): AppError {
  const message = "This idempotency key was used for another request: use a new key for each request";
  return new AppError(422, message, { data: { idempotencyKey: { code: "invalid_value", message } } });
}
