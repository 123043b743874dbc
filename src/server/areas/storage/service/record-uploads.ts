import type { Clock } from "../../../../kernel/clock.ts";
import { AppError } from "../../../../kernel/errors.ts";
import type { ArrivingFile, FileUpload, RecordPlace, StagedFile } from "../../../access/record-files.ts";
import type { FileLife } from "../contents/file-life.ts";
import { readOnly } from "../contents/object-stores.ts";
import type { Gates } from "../gates.ts";
import { parseContentType } from "../model/content.ts";
import type { Bucket, IncomingFile } from "../model/types.ts";
import type { Arrival } from "../store/quotas.ts";
import type { StorageStore } from "../store/store.ts";

interface Deps {
  store: StorageStore;
  gates: Pick<Gates, "bucket">;
  life: FileLife;
  clock: Clock;
}

/** Sender of files, and the database file of the records that get them. */
export type Sender = RecordPlace & { ownerId: string | null };

interface Staged {
  bucket: Bucket;
  file: StagedFile;
  incoming: IncomingFile;
  arrival: Arrival | null;
  /** Resolves when the bytes are durable; null: they have not ended. */
  finishing: Promise<void> | null;
}

/** The files of one form. No sweep removes them before `end`. */
export class RecordUpload implements FileUpload {
  readonly #deps: Deps;
  readonly #from: Sender;
  readonly #staged: Staged[] = [];
  #isStored = false;

  constructor(deps: Deps, from: Sender) {
    this.#deps = deps;
    this.#from = from;
  }

  get ids(): string[] {
    return this.#staged.map(({ file }) => file.id);
  }

  /** Whether records and claims may name the files: from then on they are compared with these. */
  get isStored(): boolean {
    return this.#isStored;
  }

  async begin({ bucket: name, field, maxBytes, contentType: declared }: ArrivingFile): Promise<StagedFile> {
    const { store, gates, life } = this.#deps;
    // One after the other: each has a buffer and an open file.
    await this.#staged.at(-1)?.finishing;
    const contentType = parseContentType(declared);
    const bucket = gates.bucket(name);
    if (bucket.isReadOnly) throw readOnly(`The bucket "${name}"`);
    const most = Math.min(maxBytes ?? bucket.maxFileBytes, bucket.maxFileBytes);
    const id = life.hold();
    let incoming: IncomingFile;
    try {
      incoming = await bucket.files.create(id);
    } catch (cause) {
      life.release(id);
      throw cause;
    }
    const arrival = store.arrival(name, this.#from.ownerId);
    let size = 0;
    const file: StagedFile = {
      id,
      contentType,
      get size() {
        return size;
      },
      async take(chunk) {
        size += chunk.byteLength;
        if (size > most) throw tooLarge(field, most);
        arrival?.take(chunk.byteLength);
        await incoming.write(chunk);
      },
      end() {
        staged.finishing = incoming.finish();
        // Awaited by the next file, or with the claims.
        staged.finishing.catch(() => {});
      },
    };
    const staged: Staged = { bucket, file, incoming, arrival, finishing: null };
    this.#staged.push(staged);
    return file;
  }

  async store(): Promise<void> {
    if (this.#staged.length === 0) return;
    const { store, clock } = this.#deps;
    const { ownerId, namespace, instanceId } = this.#from;
    const claims = this.#staged.map(({ bucket, file }) => ({
      fileId: file.id,
      bucket: bucket.name,
      size: file.size,
      ownerId,
      namespace,
      instanceId: instanceId ?? "",
      storedAt: clock.now(),
      isPending: 1,
    }));
    this.#isStored = true;
    // Together: a claim without bytes, and bytes without a claim, are removed alike.
    const settled = await Promise.allSettled([
      store.write((storage) => {
        for (const claim of claims) storage.claim(claim);
      }),
      ...this.#staged.map(({ finishing }) => finishing),
    ]);
    for (const outcome of settled) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** Removes bytes that nothing names, and ends the protection of the files. */
  async end(): Promise<void> {
    for (const { bucket, file, incoming, arrival, finishing } of this.#staged) {
      arrival?.end();
      await finishing?.catch(() => {});
      if (!this.#isStored || !this.#mayBeNamed(file.id)) {
        await incoming.discard().catch(() => {});
        await bucket.files.remove(file.id).catch(() => {});
      }
      this.#deps.life.release(file.id);
    }
  }

  /** Whether there is a claim; true when the claims cannot be read. */
  #mayBeNamed(fileId: string): boolean {
    try {
      return this.#deps.store.hasFile(fileId);
    } catch {
      return true;
    }
  }
}

function tooLarge(field: string, maxBytes: number): AppError {
  const message = `${field} must be at most ${maxBytes} bytes`;
  return new AppError(413, message, { data: { [field]: { code: "too_large", message } } });
}
