import { hkdfSync, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../../../kernel/clock.ts";
import { unauthorized } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import { anySignerOf, principalOfSigner, type SignerDeps } from "../../../access/signers.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type ExpandStep, parseExpand } from "../expand/paths.ts";
import { SIGNED_PER_STEP } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { ReadRequest } from "../model/requests.ts";
import { fieldValue, filesIn } from "./values.ts";

const KEY_BYTES = 32;
/** The last part has room for the longest id of a user: 256 characters of up to three bytes each. */
const TOKEN = /^(\d{1,12})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{1,1100})$/;

/** A read that may ask for signed urls. */
export interface SigningRequest<Values> extends ReadRequest<Values & { signFiles?: number; expand?: string }> {
  peek(name: string): string | null;
}

export type FileSigning = ReturnType<typeof createFileSigning>;

/** Signs urls of files. A token is good for one url, until it expires or its signer may not read the record any more. [TB733] */
export function createFileSigning(deps: SignerDeps & { secret: string; clock: Clock }) {
  const key = Buffer.from(hkdfSync("sha256", deps.secret, "", "platform signed record files v1", KEY_BYTES));
  const turns = new Scheduler();
  const macOf = (url: string, expiresAt: number, signer: string): string =>
    new Bun.CryptoHasher("sha256", key).update(JSON.stringify([url, expiresAt, signer])).digest("base64url");
  /** Returns a function that signs urls for the caller. */
  const signing = (principal: Principal, seconds: number): ((url: string) => string) => {
    const expiresAt = Math.floor(deps.clock.now() / SECOND_MS) + seconds;
    const signer = anySignerOf(principal);
    const end = Buffer.from(signer).toString("base64url");
    return (url) => `${url}?token=${expiresAt}.${macOf(url, expiresAt, signer)}.${end}`;
  };
  return {
    signing,

    /** Returns who has signed this url, with its present rights. Errors: 401. */
    signerOf(url: string, token: string): Principal {
      const [, expiry = "", mac = "", end = ""] = TOKEN.exec(token) ?? [];
      const signer = Buffer.from(end, "base64url").toString("utf8");
      const right = Buffer.from(macOf(url, Number(expiry), signer));
      const given = Buffer.from(mac);
      if (given.byteLength !== right.byteLength || !timingSafeEqual(given, right)) throw unauthorized("Invalid token");
      if (Number(expiry) * SECOND_MS <= deps.clock.now()) throw unauthorized("Token expired");
      return principalOfSigner(deps, signer);
    },

    /** Reads, and signs the urls of the answer's records, expanded ones too, where the request has `signFiles`. [TB734] */
    read<Values, T extends object>(
      asked: SigningRequest<Values>,
      modelOf: () => TableModel,
      read: (asked: ReadRequest<Values>) => MaybePromise<T>,
    ): MaybePromise<T> {
      if (asked.peek("signFiles") === null) return read(asked);
      // Without the text of its query: answers that are kept for all callers have no tokens.
      const alone: ReadRequest<Values> = {
        principal: asked.principal,
        query: () => asked.query(),
        callerName: asked.callerName,
        signal: asked.signal,
        keepUntilSent: (release) => asked.keepUntilSent?.(release),
      };
      return chain(read(alone), (answer) => {
        const { signFiles, expand } = asked.query();
        const model = modelOf();
        const steps = withFiles(parseExpand(model, expand) ?? []);
        if (signFiles === undefined || (model.files.length === 0 && steps.length === 0)) return answer;
        const sign = signing(asked.principal, signFiles);
        return turns.run(signedAnswer(model, steps, answer, sign));
      });
    },
  };
}

/** Signing of one answer. */
interface Work {
  sign(url: string): string;
  /** Records and files since the last pause. */
  count: number;
  /** The records that are signed already, by the step that has found them: many may refer to one. */
  seen: Map<ExpandStep, Map<JsonValue, TableRecord>>;
}

/** Returns the steps, by the records that they find or lead to, that lead to files. */
const withFiles = (steps: readonly ExpandStep[]): ExpandStep[] =>
  steps.flatMap((step) => {
    const next = withFiles(step.next);
    return foundBy(step).files.length === 0 && next.length === 0 ? [] : [{ ...step, next }];
  });

/** Returns the table of the records that a step finds. */
const foundBy = ({ direction, edge }: ExpandStep): TableModel => (direction === "one" ? edge.to : edge.from);

/** Returns an answer, a record or a page of records, with signed urls, in the records that `steps` have found too. */
function* signedAnswer<T extends object>(
  model: TableModel,
  steps: readonly ExpandStep[],
  answer: T,
  sign: (url: string) => string,
): Generator<void, T> {
  const work: Work = { sign, count: 0, seen: new Map() };
  // Only pages have a list of this name beside their `hasMore`.
  const isPage = "hasMore" in answer && "items" in answer && Array.isArray(answer.items);
  if (!isPage) return (yield* signedRecord(work, model, steps, answer as TableRecord)) as T;
  return { ...answer, items: yield* signedRecords(work, model, steps, answer.items as TableRecord[]) };
}

function* signedRecords(
  work: Work,
  model: TableModel,
  steps: readonly ExpandStep[],
  records: readonly TableRecord[],
): Generator<void, TableRecord[]> {
  const signed: TableRecord[] = [];
  for (const record of records) signed.push(yield* signedRecord(work, model, steps, record));
  return signed;
}

function* signedRecord(
  work: Work,
  model: TableModel,
  steps: readonly ExpandStep[],
  record: TableRecord,
): Generator<void, TableRecord> {
  const signed: TableRecord = { ...record };
  work.count++;
  for (const column of model.files) {
    const files = filesIn(record[column.name]);
    if (files.length === 0) continue;
    work.count += files.length;
    signed[column.name] = fieldValue(
      column,
      files.map((file) => ({ ...file, url: work.sign(file.url) })),
    );
  }
  if (work.count >= SIGNED_PER_STEP) {
    work.count = 0;
    yield;
  }
  const { expand } = record;
  if (steps.length === 0 || !isJsonObject(expand)) return signed;
  const expanded = { ...expand };
  for (const step of steps) expanded[step.name] = yield* signedFound(work, step, expand[step.name] ?? null);
  return { ...signed, expand: expanded };
}

/** Returns what a step has found, with signed urls: a record or null, several, or `{ items, hasMore }`. */
function* signedFound(work: Work, step: ExpandStep, found: JsonValue): Generator<void, JsonValue> {
  if (found === null) return null;
  const seen = work.seen.get(step) ?? new Map<JsonValue, TableRecord>();
  work.seen.set(step, seen);
  const one = function* (record: JsonValue): Generator<void, TableRecord> {
    const known = seen.get(record);
    if (known !== undefined) return known;
    // Expanded records are records.
    const signed = yield* signedRecord(work, foundBy(step), step.next, record as TableRecord);
    seen.set(record, signed);
    return signed;
  };
  const all = function* (records: readonly JsonValue[]): Generator<void, TableRecord[]> {
    const signed: TableRecord[] = [];
    for (const record of records) signed.push(yield* one(record));
    return signed;
  };
  if (Array.isArray(found)) return yield* all(found);
  if (step.direction === "one") return yield* one(found);
  return isJsonObject(found) && Array.isArray(found["items"]) ? { ...found, items: yield* all(found["items"]) } : found;
}
