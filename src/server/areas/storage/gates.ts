import type { Clock } from "../../../kernel/clock.ts";
import { conflict, forbidden, notFound, unauthorized } from "../../../kernel/errors.ts";
import { frozenJson } from "../../../kernel/json/frozen.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { askRule } from "../../../kernel/observing/request-trace.ts";
import { within } from "../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import type { LookupCall, Lookups, LookupWatch } from "../../access/lookups/lookups.ts";
import { actorOf, authOf, type Principal } from "../../access/principal.ts";
import type { Principals } from "../../access/principals.ts";
import { createProbe, mayTakeMoreThan } from "../../access/probe.ts";
import type { BucketRule, FileFacts } from "../../config/types.ts";
import type { Actor } from "../../db/index.ts";
import { judge } from "../../sockets/judge.ts";
import type { StandingRights } from "../../sockets/standing-rights.ts";
import { readOnly } from "./contents/object-stores.ts";
import { RULE_ATTEMPTS_MAX } from "./limits.ts";
import { type Bucket, factsOf, type ObjectAddress, type StoredObject } from "./model/types.ts";
import type { ObjectVersion, StorageStore, StorageWrite } from "./store/store.ts";

export type BucketAction = "read" | "write" | "delete";
type FileRule = Extract<BucketRule, (...args: never[]) => unknown>;

interface GatesDeps {
  buckets: ReadonlyMap<string, Bucket>;
  lookups: Lookups;
  rights: Pick<StandingRights, "begin">;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  logger: Logger;
}

/** Number of parameters of a rule without its context. */
const FILE_PARAMETERS = 2;

/**
 * Facts that a rule reads before there is a file. Every member is present, so that the rule does not throw. Frozen, as all
 * rules share it.
 */
const EMPTY_FILE: FileFacts = frozenJson({
  key: "",
  size: 0,
  contentType: "",
  uploadedBy: null,
  customMetadata: {},
  uploaded: new Date(0).toISOString(),
});

/** Checks the rights of callers in buckets. Every access to a file begins here. */
export class Gates {
  readonly #deps: GatesDeps;

  constructor(deps: GatesDeps) {
    this.#deps = deps;
  }

  /** Returns the bucket without any check, for a signed URL of an earlier version and for the server itself. Errors: 404. */
  bucket(name: string): Bucket {
    const bucket = this.#deps.buckets.get(name);
    if (bucket === undefined) throw notFound(`There is no bucket "${name}"`);
    return bucket;
  }

  /**
   * Checks, in this order, credentials, bucket, scope and, when the rule does not read the file, the rule. Errors: 401,
   * 404, 403. `allowAnonymous`: the rule may allow callers without credentials (download and HEAD only). `eachFile`: a
   * denial is reported when the gate is asked about a file, not at once.
   */
  async enter(
    principal: Principal,
    name: string,
    action: BucketAction,
    options: { allowAnonymous?: boolean; eachFile?: boolean } = {},
  ): Promise<Gate> {
    if (principal.kind === "anonymous" && options.allowAnonymous !== true) throw unauthorized();
    const bucket = this.bucket(name);
    if (principal.kind === "serviceKey" && !principal.scopes.allows("storage", "bucket", name, action)) {
      throw forbidden();
    }
    if (bucket.isReadOnly && action !== "read") throw readOnly(`The bucket "${name}"`);
    const passes = principal.kind === "serviceKey" || principal.kind === "server";
    const rule = passes ? true : bucket.config.access?.[action];
    const asked =
      typeof rule === "function" ? new AskedRule(this.#deps, { rule, principal, bucket: name, action }) : null;
    const verdict = asked === null ? rule === true : await asked.verdict();
    const gate = new Gate({ principal, bucket, asked, verdict });
    if (verdict !== null && options.eachFile !== true) gate.enforce(verdict);
    return gate;
  }
}

/** A bucket's rule for one caller and one action, after credentials, bucket and scope have been checked. */
export class Gate {
  readonly bucket: Bucket;
  /** The caller, as triggers name it. */
  readonly actor: Actor;
  readonly isAnonymous: boolean;
  /** Verdict of the rule for every file in the bucket; null when it depends on the file. */
  readonly verdict: boolean | null;
  readonly #asked: AskedRule | null;

  constructor(of: { principal: Principal; bucket: Bucket; asked: AskedRule | null; verdict: boolean | null }) {
    this.bucket = of.bucket;
    this.actor = actorOf(of.principal);
    this.isAnonymous = of.principal.kind === "anonymous";
    this.verdict = of.verdict;
    this.#asked = of.asked;
  }

  /** Whether the rule allows the file. */
  ask(file: FileFacts): MaybePromise<boolean> {
    return this.verdict ?? this.#rule.ask(file);
  }

  /**
   * Like `ask`, and watches the rule's lookups while the rule is awaited, so that the verdict holds for the present
   * records. [ST215]
   */
  askPresent(file: FileFacts): MaybePromise<boolean> {
    return this.verdict ?? this.#rule.askPresent(file);
  }

  /** Like `ask`, and reports the rule's lookups to `watch`. */
  askWatched(file: FileFacts, watch: LookupWatch): MaybePromise<boolean> {
    return this.verdict ?? this.#rule.askWatched(file, watch);
  }

  /** Begins to watch the rule's lookups. The caller must end the watch. */
  beginWatching() {
    return this.#rule.beginWatching();
  }

  /** Evaluates a rule that depends on the file. Errors: 401 without credentials, else 403 when it denies. */
  async require(file: () => FileFacts): Promise<void> {
    if (this.verdict === null) this.enforce(await this.ask(file()));
  }

  /** Throws when `isAllowed` is false. Errors: 401 without credentials, else 403. */
  enforce(isAllowed: boolean): void {
    if (!isAllowed) throw this.isAnonymous ? unauthorized() : forbidden();
  }

  get #rule(): AskedRule {
    if (this.#asked === null) throw new Error("a bucket without a rule has a verdict");
    return this.#asked;
  }
}

/** Evaluates a rule that is a function. Only `true` allows: a rule that throws or times out denies. */
class AskedRule {
  readonly #deps: GatesDeps;
  readonly #about: { rule: FileRule; principal: Principal; bucket: string; action: BucketAction };
  readonly #call: LookupCall;

  constructor(deps: GatesDeps, about: { rule: FileRule; principal: Principal; bucket: string; action: BucketAction }) {
    this.#deps = deps;
    this.#about = about;
    this.#call = deps.lookups.begin();
  }

  /** Verdict of the rule for every file; null when it reads the file, or has to be evaluated again once a body has arrived. */
  async verdict(): Promise<boolean | null> {
    const { rule, action } = this.#about;
    const mayTakeContext = mayTakeMoreThan(rule, FILE_PARAMETERS);
    if (rule.length === FILE_PARAMETERS && !mayTakeContext) return null;
    // A rule with a context may or may not read the file, and one with fewer parameters may read it by rest parameters,
    // defaults or `arguments`.
    const probe = createProbe(EMPTY_FILE);
    const verdict = await this.askPresent(probe.standIn, () => !probe.isSeen);
    // The records it has looked up may be gone when the body has arrived. [ST212]
    const isAskedLater = verdict && action !== "read" && mayTakeContext;
    return probe.isSeen || isAskedLater ? null : verdict;
  }

  ask(file: FileFacts): MaybePromise<boolean> {
    // An upload may take hours; the rule is then evaluated against what has been stored since.
    const call = this.#about.action === "read" ? this.#call : this.#deps.lookups.begin();
    return this.#askWith(call, file);
  }

  askWatched(file: FileFacts, watch: LookupWatch, isLogged = () => true): MaybePromise<boolean> {
    return this.#askWith(this.#deps.lookups.begin({ watch }), file, isLogged);
  }

  askPresent(file: FileFacts, isLogged = () => true): MaybePromise<boolean> {
    return judge((watch) => this.askWatched(file, watch, isLogged), this.#deps.rights);
  }

  beginWatching() {
    return this.#deps.rights.begin();
  }

  #askWith(call: LookupCall, file: FileFacts, isLogged = () => true): MaybePromise<boolean> {
    const answer = this.#answerOf(call, file, isLogged);
    return chain(answer, (isAllowed) => {
      call.check();
      // The session may have ended while the rule was awaited. [HT136]
      if (isPromise(answer)) this.#deps.requirePresent(this.#about.principal);
      return isAllowed;
    });
  }

  #answerOf(call: LookupCall, file: FileFacts, isLogged: () => boolean): MaybePromise<boolean> {
    const { rule, principal, bucket, action } = this.#about;
    const denied = (cause: unknown): boolean => {
      if (isLogged()) this.#deps.logger.error("storage: an access rule threw and denies", { bucket, action, cause });
      return false;
    };
    try {
      const verdict = askRule(`bucket ${bucket} ${action}`, () => rule(authOf(principal), file, call.context(null)));
      if (!isPromise(verdict)) return verdict === true;
      return within(this.#deps.clock, RULE_TIMEOUT_MS, verdict).then((value) => value === true, denied);
    } catch (cause) {
      return denied(cause);
    }
  }
}

/**
 * Returns what a rule sees of a file about to be written: its key, size and type. Of the file to be replaced the rule sees
 * `uploadedBy`, `customMetadata` and `uploaded`, so that it can prevent users from overwriting each other's files.
 */
export function factsOfNew(
  file: { key: string; size: number; contentType: string },
  present: StoredObject | null,
): FileFacts {
  const { key, size, contentType } = file;
  return present === null ? { key, size, contentType } : { ...factsOf(present), key, size, contentType };
}

export interface GuardedWork<T> {
  /** Returns the facts for the rule. May throw (404). */
  facts(present: StoredObject | null): FileFacts;
  /** Runs inside the transaction, with the version of the file that the rule has seen. */
  write(storage: StorageWrite, present: ObjectVersion | null): T;
}

const CHANGED = Symbol("the file changed while an asynchronous rule was asked");

/**
 * Evaluates the rule and writes. Both see the same file, [ST45], and the same records, [ST215]: when these change in
 * between, a synchronous rule is evaluated again inside the transaction, and an asynchronous one by starting over. Errors:
 * 401, 403; 409 when the file keeps changing.
 */
export async function guardedWrite<T>(
  store: StorageStore,
  gate: Gate,
  address: ObjectAddress,
  work: GuardedWork<T>,
): Promise<T> {
  if (gate.verdict !== null) {
    // Before the file is looked up: a caller who may delete no file learns of none.
    gate.enforce(gate.verdict);
    return store.write((storage) => work.write(storage, storage.version(address)));
  }
  for (let attempt = 0; attempt < RULE_ATTEMPTS_MAX; attempt++) {
    const seen = store.find(address);
    const facts = work.facts(seen);
    const right = gate.beginWatching();
    try {
      const answer = gate.askWatched(facts, right.watch);
      gate.enforce(isPromise(answer) ? await answer : answer);
      const outcome = await store.write((storage): { value: T } | typeof CHANGED => {
        if (!right.isStale && isSame(seen, storage.version(address))) return { value: work.write(storage, seen) };
        const present = storage.find(address);
        const again = gate.ask(work.facts(present));
        if (isPromise(again)) {
          // The attempt is repeated and awaited; this rejection must not count as unhandled.
          again.catch(() => {});
          return CHANGED;
        }
        gate.enforce(again);
        return { value: work.write(storage, present) };
      });
      if (outcome !== CHANGED) return outcome.value;
    } finally {
      right.end();
    }
  }
  throw conflict(`"${address.key}" kept changing while the rule was asked about it`);
}

const isSame = (seen: ObjectVersion | null, present: ObjectVersion | null): boolean =>
  seen?.fileId === present?.fileId && seen?.revision === present?.revision;
