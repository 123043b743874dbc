import { type AppError, notFound, unauthorized } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import type { Gate, Gates } from "../gates.ts";
import { RULE_ATTEMPTS_MAX } from "../limits.ts";
import { parseKey } from "../model/keys.ts";
import { type Bucket, factsOf, type StoredObject } from "../model/types.ts";
import type { StorageReads } from "../store/store.ts";

export interface FoundObject {
  bucket: Bucket;
  object: StoredObject;
}

/** Finds files for reads, as the rules of their bucket allow. */
export class FileFinding {
  readonly #store: Pick<StorageReads, "find">;
  readonly #gates: Gates;

  constructor({ store, gates }: { store: Pick<StorageReads, "find">; gates: Gates }) {
    this.#store = store;
    this.#gates = gates;
  }

  /** Finds the file for a read. `checkForm` throws when the form of the request is wrong; it is called once the caller is allowed. Errors: 401, 403, 404. */
  async find(
    principal: Principal,
    bucketName: string,
    key: string,
    options?: { allowAnonymous?: boolean; checkForm?: () => void },
  ): Promise<FoundObject> {
    const gate = await this.#gates.enter(principal, bucketName, "read", options);
    options?.checkForm?.();
    const address = { bucket: bucketName, key: parseKey(key) };
    for (let attempt = 1; ; attempt++) {
      const object = existing(this.#store.find(address), gate, key);
      gate.enforce(gate.verdict ?? (await gate.askPresent(factsOf(object))));
      // While the rule was awaited, the file may have been replaced or deleted and its bytes removed.
      const isPresent = gate.verdict !== null || this.#store.find(address)?.fileId === object.fileId;
      if (isPresent || attempt === RULE_ATTEMPTS_MAX) return { bucket: gate.bucket, object };
    }
  }

  /** Finds the file of a signed URL of an earlier version, which does not say who asked for it. Errors: 404. */
  findSigned(bucketName: string, key: string): FoundObject {
    const bucket = this.#gates.bucket(bucketName);
    const object = this.#store.find({ bucket: bucketName, key });
    if (object === null) throw missing(key);
    return { bucket, object };
  }
}

/**
 * Returns the file, or throws when there is none. Errors: 404; 401 for callers without credentials when the rule reads the
 * file, so that they cannot learn which keys exist, [ST40].
 */
export function existing<Found>(object: Found | null, gate: Gate, key: string): Found {
  if (object !== null) return object;
  if (gate.isAnonymous && gate.verdict === null) throw unauthorized();
  throw missing(key);
}

const missing = (key: string): AppError => notFound(`There is no file "${key}"`);
