import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { StoredFile } from "../../../config/app/index.ts";
import type { FileFacts } from "../../../config/types.ts";
import type { FileLife } from "../contents/file-life.ts";
import { factsOfNew, type Gate, type Gates, guardedWrite } from "../gates.ts";
import { type Metadata, type MetadataChanges, mergeMetadata } from "../model/content.ts";
import { parseKey } from "../model/keys.ts";
import { factsOf, type IncomingFile, type StoredObject } from "../model/types.ts";
import type { StorageStore, StorageWrite } from "../store/store.ts";
import { existing, FileFinding } from "./finding.ts";

export interface StorageDeps {
  store: StorageStore;
  gates: Gates;
  life: FileLife;
  clock: Clock;
  paces: () => Pace;
}

/** Facts that a request states about the file it uploads. */
export interface ReceivedFile {
  key: string;
  contentType: string;
  customMetadata: Metadata;
  size: number;
}

interface NewFile {
  gate: Gate;
  uploadedBy: string | null;
  /** Fills the file. When it throws, nothing is stored. */
  receive(incoming: IncomingFile): Promise<ReceivedFile>;
  /**
   * Whether the bytes count towards the quota already, as parts of an upload. Then only the transaction that stores the
   * file, and removes those, checks the quota.
   */
  isCounted?: boolean;
  /** Runs in the transaction that makes the file visible. */
  within?(storage: StorageWrite, made: StoredObject): void;
}

/** Reads, stores, changes and removes files as the rules of their bucket allow. */
export class StorageService extends FileFinding {
  readonly #deps: StorageDeps;

  constructor(deps: StorageDeps) {
    super(deps);
    this.#deps = deps;
  }

  /** Stores a file, replacing the one with its key. Errors: 401, 403, 413, 507, and what `receive` throws. */
  put({ gate, uploadedBy, receive, within, isCounted = false }: NewFile): Promise<StoredObject> {
    const { store, life, clock } = this.#deps;
    return life.withNew(gate.bucket.files, async (incoming, fileId) => {
      const { key, contentType, customMetadata, size } = await receive(incoming);
      const address = { bucket: gate.bucket.name, key };
      const facts = (present: StoredObject | null): FileFacts => factsOfNew({ key, size, contentType }, present);
      // Evaluated before the sync as well: a refused upload costs no sync.
      await gate.require(() => facts(store.find(address)));
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
    });
  }

  /** Removes a file. `checkForm` throws when the form of the request is wrong; it is called once the caller is allowed. */
  async remove(principal: Principal, bucket: string, key: string, checkForm?: () => void): Promise<void> {
    const gate = await this.#deps.gates.enter(principal, bucket, "delete");
    checkForm?.();
    await this.#removeOne(gate, parseKey(key));
  }

  /** Removes several files. An expected failure affects its key alone. */
  async removeBatch(
    principal: Principal,
    bucket: string,
    keys: () => Promise<readonly string[]>,
  ): Promise<{ deleted: string[]; failed: { key: string; error: string }[] }> {
    const gate = await this.#deps.gates.enter(principal, bucket, "delete", { eachFile: true });
    return removeEach(await keys(), this.#deps.paces(), (key) => this.#removeOne(gate, parseKey(key)));
  }

  /** Changes metadata. Resolves to the changed file and the members that the caller has set. */
  async patchMetadata(
    principal: Principal,
    bucket: string,
    key: string,
    changes: () => Promise<MetadataChanges>,
  ): Promise<{ object: StoredObject; sent: Metadata }> {
    const { store, gates } = this.#deps;
    const gate = await gates.enter(principal, bucket, "write");
    const wanted = await changes();
    const sent = mergeMetadata({}, wanted);
    const address = { bucket, key: parseKey(key) };
    const object = await guardedWrite(store, gate, address, {
      facts: (present) => factsOf(existing(present, gate, key)),
      write(storage) {
        const object = existing(storage.find(address), gate, key);
        const customMetadata = mergeMetadata(object.customMetadata, wanted);
        const changed = { ...object, customMetadata, revision: object.revision + 1 };
        storage.put(changed, gate.actor);
        return changed;
      },
    });
    return { object, sent };
  }

  /** Whether the caller may read the file, for responses to writes: who may write a file need not be allowed to read it. */
  async mayRead(principal: Principal, object: StoredObject): Promise<boolean> {
    try {
      const gate = await this.#deps.gates.enter(principal, object.bucket, "read");
      return await gate.ask(factsOf(object));
    } catch (cause) {
      if (cause instanceof AppError && cause.status < 500) return false;
      throw cause;
    }
  }

  async #removeOne(gate: Gate, key: string): Promise<void> {
    const { store, life } = this.#deps;
    const address = { bucket: gate.bucket.name, key };
    const removed = await guardedWrite(store, gate, address, {
      facts: (present) => factsOf(existing(present, gate, key)),
      write(storage, present) {
        storage.remove(address, gate.actor);
        return existing(present, gate, key).fileId;
      },
    });
    life.dispose(gate.bucket.files, [removed]);
  }
}

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

/** Returns the user that owns a new file; null for service keys and the server. */
export const ownerOf = (principal: Principal): string | null => (principal.kind === "user" ? principal.auth.id : null);

/** Returns the file as responses show it. */
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
