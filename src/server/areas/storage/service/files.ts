import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, notFound, unauthorized } from "../../../../kernel/errors.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { StoredFile } from "../../../config/app/index.ts";
import type { FileFacts } from "../../../config/types.ts";
import type { FileLife } from "../contents/file-life.ts";
import { factsOfNew, type Gates, guardedWrite, untilFresh } from "../gates.ts";
import { RULE_ATTEMPTS_MAX } from "../limits.ts";
import { type Metadata, type MetadataChanges, mergeMetadata } from "../model/content.ts";
import { parseKey } from "../model/keys.ts";
import { type Bucket, factsOf, type Gate, type IncomingFile, type StoredObject } from "../model/types.ts";
import type { StorageStore, StorageWrite } from "../store/store.ts";

export interface StorageDeps {
  store: StorageStore;
  gates: Gates;
  life: FileLife;
  clock: Clock;
  paces: () => Pace;
}

/** What a request says about the file that it uploads. */
export interface ReceivedFile {
  key: string;
  contentType: string;
  customMetadata: Metadata;
  size: number;
}

export interface NewFile {
  gate: Gate;
  uploadedBy: string | null;
  /** Fills the file. Where it throws, nothing is stored. */
  receive(incoming: IncomingFile): Promise<ReceivedFile>;
  /** Its bytes count for the quota already, as parts of an upload: only the write, which removes those, asks for room. */
  isCounted?: boolean;
  /** Runs in the write that makes the file visible. */
  within?(storage: StorageWrite, made: StoredObject): void;
}

export interface StorageService {
  /** The file that a read asks for. Errors: 401, 403, 404. */
  find(
    principal: Principal,
    bucket: string,
    key: string,
    options?: { allowAnonymous?: boolean; checkForm?: () => void },
  ): Promise<FoundObject>;
  /** The same for a signed URL of an earlier version, which does not say who asked for it. Errors: 404. */
  findSigned(bucket: string, key: string): FoundObject;
  /** Stores a file, in place of the one with its key. Errors: 401, 403, 413, 507, and what `receive` throws. */
  put(file: NewFile): Promise<StoredObject>;
  /** `checkForm` throws what is wrong with the form of the request; it is called once the caller may be there. */
  remove(principal: Principal, bucket: string, key: string, checkForm?: () => void): Promise<void>;
  removeBatch(
    principal: Principal,
    bucket: string,
    keys: () => Promise<readonly string[]>,
  ): Promise<{ deleted: string[]; failed: { key: string; error: string }[] }>;
  /** Gives the file as it is then, and the members that the caller has set. */
  patchMetadata(
    principal: Principal,
    bucket: string,
    key: string,
    changes: () => Promise<MetadataChanges>,
  ): Promise<{ object: StoredObject; sent: Metadata }>;
  /** For answers to writes: who may write a file need not be allowed to read it. */
  mayRead(principal: Principal, object: StoredObject): Promise<boolean>;
}

export interface FoundObject {
  bucket: Bucket;
  object: StoredObject;
}

export function createStorageService({ store, gates, life, clock, paces }: StorageDeps): StorageService {
  const removeOne = async (gate: Gate, key: string): Promise<void> => {
    const removed = await guardedWrite(
      store,
      gate,
      { bucket: gate.bucket.name, key },
      {
        facts: (present) => factsOf(existing(present, gate, key)),
        write(storage, present) {
          storage.remove({ bucket: gate.bucket.name, key }, gate.actor);
          return existing(present, gate, key).fileId;
        },
      },
    );
    life.dispose(gate.bucket.files, [removed]);
  };

  return {
    async find(principal, bucketName, key, options) {
      const gate = await gates.enter(principal, bucketName, "read", options);
      options?.checkForm?.();
      const address = { bucket: bucketName, key: parseKey(key) };
      for (let attempt = 1; ; attempt++) {
        const object = existing(store.find(address), gate, key);
        gate.enforce(gate.verdict ?? (await untilFresh(() => gate.askWatched(factsOf(object)))));
        // A rule may take longer than the bytes stay of a file that is replaced or deleted meanwhile.
        const isPresent = gate.verdict !== null || store.find(address)?.fileId === object.fileId;
        if (isPresent || attempt === RULE_ATTEMPTS_MAX) return { bucket: gate.bucket, object };
      }
    },

    findSigned(bucketName, key) {
      const bucket = gates.bucket(bucketName);
      const object = store.find({ bucket: bucketName, key });
      if (object === null) throw missing(key);
      return { bucket, object };
    },

    put: ({ gate, uploadedBy, receive, within, isCounted = false }) =>
      life.withNew(gate.bucket.files, async (incoming, fileId) => {
        const { key, contentType, customMetadata, size } = await receive(incoming);
        const address = { bucket: gate.bucket.name, key };
        const facts = (present: StoredObject | null): FileFacts => factsOfNew({ key, size, contentType }, present);
        // Asked before the sync as well: a refused upload costs no sync.
        if (gate.verdict === null) gate.enforce(await gate.ask(facts(store.find(address))));
        if (!isCounted) store.requireRoom({ ...address, size, uploadedBy });
        await incoming.finish();
        const [object, replaced] = await guardedWrite(store, gate, address, {
          facts,
          write(storage, present): [StoredObject, string | null] {
            const content = { fileId, size, contentType, customMetadata };
            const made = { ...address, ...content, uploadedBy, uploaded: clock.now(), revision: 1 };
            within?.(storage, made);
            storage.upload(made, gate.actor);
            return [made, present?.fileId ?? null];
          },
        });
        if (replaced !== null) life.dispose(gate.bucket.files, [replaced]);
        return object;
      }),

    async remove(principal, bucket, key, checkForm) {
      const gate = await gates.enter(principal, bucket, "delete");
      checkForm?.();
      await removeOne(gate, parseKey(key));
    },

    async removeBatch(principal, bucket, keys) {
      const gate = await gates.enter(principal, bucket, "delete", { eachFile: true });
      return removeEach(await keys(), paces(), (key) => removeOne(gate, parseKey(key)));
    },

    patchMetadata: (...asked) => patchMetadata({ store, gates }, ...asked),
    mayRead: (principal, object) => mayRead(gates, principal, object),
  };
}

async function patchMetadata(
  { store, gates }: Pick<StorageDeps, "store" | "gates">,
  ...[principal, bucket, key, changes]: Parameters<StorageService["patchMetadata"]>
): Promise<{ object: StoredObject; sent: Metadata }> {
  const gate = await gates.enter(principal, bucket, "write");
  const wanted = await changes();
  const sent = mergeMetadata({}, wanted);
  const object = await guardedWrite(
    store,
    gate,
    { bucket, key: parseKey(key) },
    {
      facts: (present) => factsOf(existing(present, gate, key)),
      write(storage) {
        const object = existing(storage.find({ bucket, key }), gate, key);
        const customMetadata = mergeMetadata(object.customMetadata, wanted);
        const changed = { ...object, customMetadata, revision: object.revision + 1 };
        storage.put(changed, gate.actor);
        return changed;
      },
    },
  );
  return { object, sent };
}

async function mayRead(gates: Gates, principal: Principal, object: StoredObject): Promise<boolean> {
  try {
    const gate = await gates.enter(principal, object.bucket, "read");
    return await (gate.verdict ?? gate.ask(factsOf(object)));
  } catch (cause) {
    if (cause instanceof AppError && cause.status < 500) return false;
    throw cause;
  }
}

/** An expected failure concerns its key alone. */
async function removeEach(
  keys: readonly string[],
  pace: Pace,
  remove: (key: string) => Promise<void>,
): Promise<{ deleted: string[]; failed: { key: string; error: string }[] }> {
  const attempt = async (key: string): Promise<{ key: string; error: string | null }> => {
    try {
      await remove(key);
      return { key, error: null };
    } catch (cause) {
      if (cause instanceof AppError && cause.status < 500) return { key, error: cause.message };
      throw cause;
    }
  };
  const attempts: Promise<{ key: string; error: string | null }>[] = [];
  await pace.next();
  for (const key of keys) {
    const one = attempt(key);
    // Awaited below; until then its rejection must not count as unhandled.
    one.catch(() => {});
    attempts.push(one);
    if (pace.isDue()) await pace.next();
  }
  const outcomes = await Promise.all(attempts);
  return {
    deleted: outcomes.flatMap(({ key, error }) => (error === null ? [key] : [])),
    failed: outcomes.flatMap(({ key, error }) => (error === null ? [] : [{ key, error }])),
  };
}

/**
 * Errors: 404; 401 for callers without credentials where the rule reads the file, so that they cannot learn which keys exist,
 * [ST40].
 */
function existing<Found>(object: Found | null, gate: Gate, key: string): Found {
  if (object !== null) return object;
  if (gate.isAnonymous && gate.verdict === null) throw unauthorized();
  throw missing(key);
}

const missing = (key: string): AppError => notFound(`There is no file "${key}"`);

/** The user that a new file belongs to; null for service keys and the server. */
export const ownerOf = (principal: Principal): string | null => (principal.kind === "user" ? principal.auth.id : null);

/** The file as answers show it. */
export function storedFile(
  object: Pick<StoredObject, "key" | "size" | "contentType" | "customMetadata" | "uploaded">,
): StoredFile {
  const { key, size, contentType, customMetadata, uploaded } = object;
  return {
    key,
    size,
    httpMetadata: { contentType },
    customMetadata,
    uploaded: new Date(uploaded).toISOString(),
  };
}
