import { RULE_TIMEOUT_MS } from "../../access/limits.ts";
import { authOf, type Principal } from "../../access/principal.ts";
import { createProbe } from "../../access/probe.ts";
import type { FileFacts } from "../../config/types.ts";
import type { Clock } from "../../kernel/clock.ts";
import { within } from "../../kernel/deadline.ts";
import { forbidden, notFound, unauthorized } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import { readOnly } from "../files/owned-files.ts";
import type { Bucket, BucketAction, Gate, StoredObject } from "../types.ts";

export interface Gates {
  /**
   * Credentials, bucket, scope, and a rule that does not look at the file, in this order. Errors: 401, 404, 403.
   * `allowAnonymous`: the rule may let those without credentials in (download and HEAD only). `eachFile`: a denial shows
   * when the gate is asked about a file, not at once. Decisions 13.
   */
  enter(
    principal: Principal,
    bucket: string,
    action: BucketAction,
    options?: { allowAnonymous?: boolean; eachFile?: boolean },
  ): Promise<Gate>;
  /** For a signed URL, whose rule was asked when it was signed: the bucket only. Errors: 404. */
  bucket(name: string): Bucket;
}

/** What a rule finds that looks before there is a file: every member is there, so that it runs through. */
const EMPTY_FILE: FileFacts = {
  ...{ key: "", size: 0, contentType: "", uploadedBy: null },
  ...{ customMetadata: {}, uploaded: new Date(0).toISOString() },
};

export function createGates(deps: { buckets: ReadonlyMap<string, Bucket>; clock: Clock; logger: Logger }): Gates {
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
      if (principal.kind === "serviceKey" && !principal.scopes.allows("storage", "bucket", name, action)) {
        throw forbidden();
      }
      if (bucket.isReadOnly && action !== "read") throw readOnly(`The bucket "${name}"`);
      const enforce = (isAllowed: boolean): void => {
        if (!isAllowed) throw isAnonymous ? unauthorized() : forbidden();
      };
      const decided = (isAllowed: boolean): Gate => {
        if (options.eachFile !== true) enforce(isAllowed);
        return { bucket, verdict: isAllowed, isAnonymous, ask: () => isAllowed, enforce };
      };
      const passes = principal.kind === "serviceKey" || principal.kind === "server";
      const rule = passes ? true : bucket.config.access?.[action];
      if (typeof rule !== "function") return decided(rule === true);
      // Only `true` allows; a throw denies, and so does a rule that does not answer.
      const ask = (file: FileFacts, isLogged = () => true): MaybePromise<boolean> => {
        const denied = (cause: unknown): boolean => {
          if (isLogged()) deps.logger.error("an access rule threw, which denies", { bucket: name, action, cause });
          return false;
        };
        try {
          const verdict = rule(authOf(principal), file);
          if (!isPromise(verdict)) return verdict === true;
          return within(deps.clock, RULE_TIMEOUT_MS, verdict).then((value) => value === true, denied);
        } catch (cause) {
          return denied(cause);
        }
      };
      const undecided: Gate = { bucket, verdict: null, isAnonymous, ask: (file) => ask(file), enforce };
      if (rule.length >= 2) return undecided;
      // Fewer parameters promise nothing: rest parameters, defaults and `arguments` reach the file too.
      const probe = createProbe(EMPTY_FILE);
      const verdict = await ask(probe.standIn, () => !probe.isSeen);
      return probe.isSeen ? undecided : decided(verdict);
    },
  };
}

/** A stored file as rules see it. */
export function factsOf(object: StoredObject): FileFacts {
  const { key, size, contentType, customMetadata, uploadedBy, uploaded } = object;
  return { key, size, contentType, customMetadata, uploadedBy, uploaded: new Date(uploaded).toISOString() };
}

/**
 * A file about to be written as rules see it: its own key, size and type, and of the one that it would replace who put
 * it there and when, so that a rule can keep people from overwriting each other's.
 */
export function factsOfNew(
  file: { key: string; size: number; contentType: string },
  present: StoredObject | null,
): FileFacts {
  const { key, size, contentType } = file;
  return present === null ? { key, size, contentType } : { ...factsOf(present), key, size, contentType };
}
