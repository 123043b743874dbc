import { hkdfSync, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../../../kernel/clock.ts";
import { unauthorized } from "../../../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import { anySignerOf, principalOfSigner, type SignerDeps } from "../../../access/signers.ts";
import type { TableRecord } from "../../../config/types.ts";
import { SIGNED_PER_STEP } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { ReadRequest } from "../model/requests.ts";
import { fieldValue, filesIn } from "./values.ts";

const KEY_BYTES = 32;
/** The last part has room for the longest id of a user: 256 characters of up to three bytes each. */
const TOKEN = /^(\d{1,12})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{1,1100})$/;

/** A read that may ask for signed urls. */
export interface SigningRequest<Values> extends ReadRequest<Values & { signFiles?: number }> {
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

    /** Reads, and signs the urls of the answer's records where the request has `signFiles`. [TB734] */
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
        const { signFiles } = asked.query();
        const model = modelOf();
        if (signFiles === undefined || model.files.length === 0) return answer;
        const sign = signing(asked.principal, signFiles);
        return turns.run(signedAnswer(model, answer, sign));
      });
    },
  };
}

/** Returns an answer, a record or a page of records, with signed urls. */
function* signedAnswer<T extends object>(
  model: TableModel,
  answer: T,
  sign: (url: string) => string,
): Generator<void, T> {
  // Only pages have a list of this name beside their `hasMore`.
  const isPage = "hasMore" in answer && "items" in answer && Array.isArray(answer.items);
  if (!isPage) return signedRecord(model, answer as TableRecord, sign).record as T;
  const items: TableRecord[] = [];
  let signed = 0;
  for (const item of answer.items as TableRecord[]) {
    const { record, count } = signedRecord(model, item, sign);
    items.push(record);
    signed += count;
    if (signed < SIGNED_PER_STEP) continue;
    signed = 0;
    yield;
  }
  return { ...answer, items };
}

function signedRecord(model: TableModel, record: TableRecord, sign: (url: string) => string) {
  const signed: TableRecord = { ...record };
  let count = 0;
  for (const column of model.files) {
    const files = filesIn(record[column.name]);
    if (files.length === 0) continue;
    count += files.length;
    signed[column.name] = fieldValue(
      column,
      files.map((file) => ({ ...file, url: sign(file.url) })),
    );
  }
  return { record: signed, count };
}
