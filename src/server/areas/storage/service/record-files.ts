import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, notFound } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { FileReferences, RecordFiles, RecordPlace } from "../../../access/record-files.ts";
import type { FileLife } from "../contents/file-life.ts";
import { contentOf, respondWith } from "../contents/response.ts";
import type { Thumbs } from "../contents/thumbs.ts";
import type { Gates } from "../gates.ts";
import { COMPARE_STEP, CONFIRM_DELAY_MS, CONFIRM_WAITING_MAX } from "../limits.ts";
import type { ClaimRecord } from "../statements/claims.ts";
import type { ClaimPlace, StorageStore } from "../store/store.ts";
import { RecordUpload } from "./record-uploads.ts";

interface Deps {
  store: StorageStore;
  gates: Pick<Gates, "bucket">;
  life: FileLife;
  thumbs: Thumbs;
  references: () => FileReferences;
  /** Whether a backup has asked for removals to wait. [BK320] */
  isHeld: () => boolean;
  clock: Clock;
  logger: Logger;
}

/**
 * The bytes of records' files. A claim in system.db names them before a record does. Which record has them is known by the file of
 * tables alone, so claims are compared with it whenever a record may have lost one: nothing else removes them. [ST362]
 */
export class RecordFileService implements RecordFiles {
  readonly #deps: Deps;
  /** New claims whose records are written, to be confirmed together. */
  #written: { place: RecordPlace; fileIds: string[] }[] = [];
  #waiting = 0;
  #cancelConfirming: (() => void) | null = null;
  readonly #running = new Set<Promise<void>>();
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  upload: RecordFiles["upload"] = async (from, work) => {
    const upload = new RecordUpload(this.#deps, from);
    let isWritten = false;
    try {
      const result = await work(upload);
      isWritten = true;
      return result;
    } finally {
      const { ids } = upload;
      // A failed write has no record, or, after a failed sync, an unknown one: the file of tables tells.
      if (!isWritten && upload.isStored) await this.#compareOrLeave(from, ids, { isOwn: true });
      await upload.end();
      if (isWritten && ids.length > 0) this.#confirmLater(from, ids);
    }
  };

  answer: RecordFiles["answer"] = async ({ request, thumb, isPublic }, { namespace, instanceId, file }, caller) => {
    const { store, gates, thumbs } = this.#deps;
    const claim = store.findClaim(file.id);
    // Of another place is a file that a copied database names.
    if (claim === null || claim.namespace !== namespace || claim.instanceId !== (instanceId ?? "")) {
      throw notFound(`The file "${file.id}" is gone`);
    }
    const bucket = gates.bucket(claim.bucket);
    const object = {
      bucket: claim.bucket,
      key: file.name,
      fileId: file.id,
      size: claim.size,
      contentType: file.type,
      customMetadata: {},
      uploadedBy: claim.ownerId,
      uploaded: claim.storedAt,
      revision: 1,
    };
    const content =
      thumb === undefined ? contentOf(bucket, object) : await thumbs.content(bucket, object, thumb, caller);
    return respondWith(request, bucket, object, content, { isPublic });
  };

  /**
   * Runs `work`, which brings back records with these files. Their claims are there before, under way, so that a crash leaves none
   * whose file no record has; no sweep compares them meanwhile. Errors: 413 over a quota; those of `work`.
   */
  async restoring(place: RecordPlace, claims: readonly ClaimRecord[], work: () => Promise<void>): Promise<void> {
    const { store, life } = this.#deps;
    const fileIds = claims.map(({ fileId }) => fileId);
    const release = life.keep(fileIds);
    try {
      await store.write((storage) => {
        for (const claim of claims)
          if (storage.findClaim(claim.fileId) === null) storage.claim({ ...claim, isPending: 1 });
      });
      await work();
    } finally {
      release();
    }
    await this.#compareOrLeave(place, fileIds);
  }

  instanceChanged(place: RecordPlace): void {
    this.#run(this.#comparePlace(claimPlaceOf(place)));
  }

  /** Compares files with the records of their place: confirms the claims of some, and removes the others. */
  async compare(place: RecordPlace, fileIds: readonly string[], { isOwn = false } = {}): Promise<void> {
    const { store, life, references } = this.#deps;
    const claims = fileIds.flatMap((fileId) =>
      isOwn || !life.isPending(fileId) ? (store.findClaim(fileId) ?? []) : [],
    );
    if (claims.length === 0) return;
    const had = await references().having(
      place,
      claims.map(({ fileId }) => fileId),
    );
    const gone = claims.filter(({ fileId }) => !had.has(fileId));
    const confirmed = claims.filter(({ fileId, isPending }) => isPending === 1 && had.has(fileId));
    if (gone.length + confirmed.length === 0) return;
    // Asked after the records: a backup that begins now copies none that has these files. Own ones were in no record.
    const isHeld = gone.length > 0 && !isOwn && this.#deps.isHeld();
    await store.write((storage) => {
      for (const { fileId } of confirmed) storage.confirmClaim(fileId);
      if (!isHeld) for (const { fileId } of gone) storage.removeClaim(fileId);
    });
    if (isHeld) throw new AppError(503, "A backup is running: files of records are removed when it has ended");
    this.#dispose(gone);
  }

  /** Compares the claims that a crash has left under way, and all of places that do not exist any more; with `isWhole`, every claim. */
  async sweep({ isWhole, rest }: { isWhole: boolean; rest: () => Promise<void> }): Promise<void> {
    const { store, references } = this.#deps;
    for (let after: string | null = ""; after !== null && !this.#isStopped; ) {
      const claims = store.pendingClaims(after, COMPARE_STEP);
      for (const [place, ids] of byPlace(claims)) await this.#compareOrLeave(place, ids);
      after = claims.length === COMPARE_STEP ? (claims.at(-1)?.fileId ?? null) : null;
      if (after !== null) await rest();
    }
    let place: ClaimPlace | null = store.placeAfter({ namespace: "", instanceId: "" });
    for (; place !== null && !this.#isStopped; place = store.placeAfter(place)) {
      if (!isWhole && references().exists(recordPlaceOf(place))) continue;
      await this.#comparePlace(place, rest);
      await rest();
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelConfirming?.();
    await Promise.all(this.#running);
  }

  async #comparePlace(place: ClaimPlace, rest: () => Promise<void> = async () => {}): Promise<void> {
    const { store } = this.#deps;
    for (let after: string | null = ""; after !== null && !this.#isStopped; ) {
      const claims = store.claimsOf(place, after, COMPARE_STEP);
      const ids = claims.map(({ fileId }) => fileId);
      await this.#compareOrLeave(recordPlaceOf(place), ids);
      after = claims.length === COMPARE_STEP ? (ids.at(-1) ?? null) : null;
      if (after !== null) await rest();
    }
  }

  /** Compares, and leaves what cannot be compared now to the next sweep. */
  async #compareOrLeave(place: RecordPlace, fileIds: readonly string[], options?: { isOwn: boolean }): Promise<void> {
    try {
      await this.compare(place, fileIds, options);
    } catch (cause) {
      const message = "files of records could not be compared with the records; the next sweep tries again";
      this.#deps.logger.warn(message, { ...place, cause });
    }
  }

  #dispose(gone: readonly ClaimRecord[]): void {
    for (const [name, claims] of Map.groupBy(gone, ({ bucket }) => bucket)) {
      const fileIds = claims.map(({ fileId }) => fileId);
      try {
        const { files, isReadOnly } = this.#deps.gates.bucket(name);
        if (!isReadOnly) this.#deps.life.dispose(files, fileIds);
      } catch {
        // The bucket is not declared any more: the sweep of bytes without a claim removes them.
      }
    }
  }

  #confirmLater({ namespace, instanceId }: RecordPlace, fileIds: string[]): void {
    if (this.#isStopped || this.#waiting + fileIds.length > CONFIRM_WAITING_MAX) return;
    this.#waiting += fileIds.length;
    this.#written.push({ place: { namespace, instanceId }, fileIds });
    this.#cancelConfirming ??= this.#deps.clock.after(CONFIRM_DELAY_MS, () => {
      this.#cancelConfirming = null;
      const written = this.#written;
      this.#written = [];
      this.#waiting = 0;
      this.#run(this.#confirm(written));
    });
  }

  async #confirm(written: readonly { place: RecordPlace; fileIds: string[] }[]): Promise<void> {
    const places = Map.groupBy(written, ({ place }) => `${place.namespace}/${place.instanceId ?? ""}`);
    for (const ofPlace of places.values()) {
      const [first] = ofPlace;
      const ids = ofPlace.flatMap(({ fileIds }) => fileIds);
      for (let from = 0; first !== undefined && from < ids.length && !this.#isStopped; from += COMPARE_STEP) {
        await this.#compareOrLeave(first.place, ids.slice(from, from + COMPARE_STEP));
      }
    }
  }

  #run(work: Promise<void>): void {
    const running = work.finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}

const claimPlaceOf = ({ namespace, instanceId }: RecordPlace): ClaimPlace => ({
  namespace,
  instanceId: instanceId ?? "",
});

const recordPlaceOf = ({ namespace, instanceId }: ClaimPlace): RecordPlace => ({
  namespace,
  instanceId: instanceId === "" ? null : instanceId,
});

function byPlace(claims: readonly ClaimRecord[]): [RecordPlace, string[]][] {
  const places = Map.groupBy(claims, ({ namespace, instanceId }) => `${namespace}/${instanceId}`);
  return [...places.values()].flatMap((of) => {
    const [first] = of;
    return first === undefined
      ? []
      : [[recordPlaceOf(first), of.map(({ fileId }) => fileId)] as [RecordPlace, string[]]];
  });
}
