import type { Clock } from "../../../kernel/clock.ts";
import { AppError, conflict, forbidden, notFound, unauthorized } from "../../../kernel/errors.ts";
import { frozenJson } from "../../../kernel/json/frozen.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { inPhase } from "../../../kernel/observing/request-trace.ts";
import { within } from "../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import type { LookupCall, Lookups } from "../../access/lookups/lookups.ts";
import { actorOf, authOf, type Principal } from "../../access/principal.ts";
import type { Principals } from "../../access/principals.ts";
import { createProbe, mayTakeMoreThan } from "../../access/probe.ts";
import type { FileFacts } from "../../config/types.ts";
import type { StandingRights } from "../../sockets/standing-rights.ts";
import { readOnly } from "./contents/object-stores.ts";
import { RULE_ATTEMPTS_MAX } from "./limits.ts";
import {
  type Bucket,
  type BucketAction,
  factsOf,
  type Gate,
  type ObjectAddress,
  type StoredObject,
  type WatchedAnswer,
} from "./model/types.ts";
import type { ObjectVersion, StorageStore, StorageWrite } from "./store/store.ts";

export interface Gates {
  /**
   * Checks credentials, bucket, scope and, where the rule does not read the file, the rule, in this order. Errors: 401, 404,
   * 403. `allowAnonymous`: the rule may allow callers without credentials (download and HEAD only). `eachFile`: a denial
   * is reported when the gate is asked about a file, not at once.
   */
  enter(
    principal: Principal,
    bucket: string,
    action: BucketAction,
    options?: { allowAnonymous?: boolean; eachFile?: boolean },
  ): Promise<Gate>;
  /** The bucket alone, for a signed URL of an earlier version, and for the server itself. Errors: 404. */
  bucket(name: string): Bucket;
}

/** Parameters of a rule without its context. */
const FILE_PARAMETERS = 2;

/** What a rule reads before there is a file. Every member is present, so that the rule does not throw. Frozen: all rules share it. */
const EMPTY_FILE: FileFacts = frozenJson({
  key: "",
  size: 0,
  contentType: "",
  uploadedBy: null,
  customMetadata: {},
  uploaded: new Date(0).toISOString(),
});

export function createGates(deps: {
  buckets: ReadonlyMap<string, Bucket>;
  lookups: Lookups;
  rights: Pick<StandingRights, "begin">;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  logger: Logger;
}): Gates {
  const bucketOf = (name: string): Bucket => {
    const bucket = deps.buckets.get(name);
    if (bucket === undefined) throw notFound(`There is no bucket "${name}"`);
    return bucket;
  };

  return {
    bucket: bucketOf,
    async enter(principal, name, action, options = {}) {
      const isAnonymous = principal.kind === "anonymous";
      if (isAnonymous && options.allowAnonymous !== true) throw unauthorized();
      const bucket = bucketOf(name);
      const actor = actorOf(principal);
      if (principal.kind === "serviceKey" && !principal.scopes.allows("storage", "bucket", name, action)) {
        throw forbidden();
      }
      if (bucket.isReadOnly && action !== "read") throw readOnly(`The bucket "${name}"`);
      const enforce = (isAllowed: boolean): void => {
        if (!isAllowed) throw isAnonymous ? unauthorized() : forbidden();
      };
      const decided = (isAllowed: boolean): Gate => {
        if (options.eachFile !== true) enforce(isAllowed);
        const askWatched = (): WatchedAnswer => ({ answer: isAllowed, isStale: () => false, end() {} });
        return { bucket, actor, verdict: isAllowed, isAnonymous, ask: () => isAllowed, askWatched, enforce };
      };
      const passes = principal.kind === "serviceKey" || principal.kind === "server";
      const rule = passes ? true : bucket.config.access?.[action];
      if (typeof rule !== "function") return decided(rule === true);
      // Only `true` allows. A rule that throws or does not answer in time denies.
      const reading = deps.lookups.begin();
      const answerOf = (file: FileFacts, isLogged: () => boolean, call: LookupCall): MaybePromise<boolean> => {
        const denied = (cause: unknown): boolean => {
          if (isLogged()) deps.logger.error("an access rule threw, which denies", { bucket: name, action, cause });
          return false;
        };
        try {
          const verdict = inPhase("rules", () => rule(authOf(principal), file, call.context(null)));
          if (!isPromise(verdict)) return verdict === true;
          return within(deps.clock, RULE_TIMEOUT_MS, verdict).then((value) => value === true, denied);
        } catch (cause) {
          return denied(cause);
        }
      };
      const askWith = (call: LookupCall, file: FileFacts, isLogged: () => boolean): MaybePromise<boolean> => {
        const answer = answerOf(file, isLogged, call);
        return chain(answer, (isAllowed) => {
          call.check();
          // The session may have ended while the rule was awaited. [HT136]
          if (isPromise(answer)) deps.requirePresent(principal);
          return isAllowed;
        });
      };
      // An upload may take hours, after which the rule is asked about what has been stored since.
      const ask = (file: FileFacts): MaybePromise<boolean> =>
        askWith(action === "read" ? reading : deps.lookups.begin(), file, () => true);
      const askWatched = (file: FileFacts, isLogged = () => true): WatchedAnswer => {
        const right = deps.rights.begin();
        const isStale = (): boolean => right.isStale;
        try {
          const answer = askWith(deps.lookups.begin({ watch: right.watch }), file, isLogged);
          return { answer, isStale, end: () => right.end() };
        } catch (cause) {
          right.end();
          throw cause;
        }
      };
      const undecided: Gate = { bucket, actor, verdict: null, isAnonymous, ask, askWatched, enforce };
      if (rule.length === FILE_PARAMETERS && !mayTakeMoreThan(rule, FILE_PARAMETERS)) return undecided;
      // A rule with a context may read the file or not, and one with fewer parameters may read it by rest parameters, defaults
      // or `arguments`.
      const probe = createProbe(EMPTY_FILE);
      const verdict = await untilFresh(() => askWatched(probe.standIn, () => !probe.isSeen));
      // What it has looked up may be gone when the body has arrived. [ST212]
      const isAskedLater = verdict && action !== "read" && mayTakeMoreThan(rule, FILE_PARAMETERS);
      return probe.isSeen || isAskedLater ? undecided : decided(verdict);
    },
  };
}

/** The answer of a rule about the records of now. Errors: those of the rule's lookups; 503 where they change all the time. [ST215] */
export async function untilFresh(ask: () => WatchedAnswer): Promise<boolean> {
  for (let attempt = 0; attempt < RULE_ATTEMPTS_MAX; attempt++) {
    const { answer, isStale, end } = ask();
    try {
      const isAllowed = isPromise(answer) ? await answer : answer;
      if (!isStale()) return isAllowed;
    } finally {
      end();
    }
  }
  throw new AppError(503, "What the rule looks up changes all the time, try again");
}

/**
 * What a rule sees of a file that is about to be written: its key, size and type. Of the file that it would replace the rule
 * sees `uploadedBy`, `customMetadata` and `uploaded`, so that it can keep users from overwriting each other's files.
 */
export function factsOfNew(
  file: { key: string; size: number; contentType: string },
  present: StoredObject | null,
): FileFacts {
  const { key, size, contentType } = file;
  return present === null ? { key, size, contentType } : { ...factsOf(present), key, size, contentType };
}

export interface GuardedWork<T> {
  /** What the rule is asked about. May throw (404). */
  facts(present: StoredObject | null): FileFacts;
  /** Runs inside the write, with the version of the file that the rule has seen. */
  write(storage: StorageWrite, present: ObjectVersion | null): T;
}

const CHANGED = Symbol("the file changed while an asynchronous rule was asked");

/**
 * Asks the rule and writes; rule and write see the same file, [ST45], and the same records, [ST215]. Where these change in between, a synchronous rule is
 * asked again inside the write, and an asynchronous one by starting over. Errors: 401, 403; 409 when the file keeps changing.
 */
export async function guardedWrite<T>(
  store: StorageStore,
  gate: Gate,
  address: ObjectAddress,
  work: GuardedWork<T>,
): Promise<T> {
  if (gate.verdict !== null) {
    // Before the file is looked for: who may delete none learns of none.
    gate.enforce(gate.verdict);
    return store.write((storage) => work.write(storage, storage.version(address)));
  }
  for (let attempt = 0; attempt < RULE_ATTEMPTS_MAX; attempt++) {
    const seen = store.find(address);
    const { answer, isStale, end } = gate.askWatched(work.facts(seen));
    try {
      gate.enforce(isPromise(answer) ? await answer : answer);
      const outcome = await store.write((storage): { value: T } | typeof CHANGED => {
        if (!isStale() && isSame(seen, storage.version(address))) return { value: work.write(storage, seen) };
        const present = storage.find(address);
        const again = gate.ask(work.facts(present));
        if (isPromise(again)) {
          // It is awaited again; what it throws now is not.
          again.catch(() => {});
          return CHANGED;
        }
        gate.enforce(again);
        return { value: work.write(storage, present) };
      });
      if (outcome !== CHANGED) return outcome.value;
    } finally {
      end();
    }
  }
  throw conflict(`"${address.key}" kept changing while the rule was asked about it`);
}

const isSame = (seen: ObjectVersion | null, present: ObjectVersion | null): boolean =>
  seen?.fileId === present?.fileId && seen?.revision === present?.revision;
