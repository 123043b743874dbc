/** Tests of how far the store is behind with the contents of buckets. */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Archive } from "../format/archive.ts";
import type { Store } from "../store/store.ts";
import { Contents } from "./contents.ts";
import { emptyManifest } from "./shipper.ts";

test("[BK337] contents that the store lacks count in the lag, from their own time on, until they are stored", async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "contents-"));
  const folder = "storage/objects/aa";
  mkdirSync(join(dataDirectory, folder), { recursive: true });
  for (const name of ["one", "other"]) writeFileSync(join(dataDirectory, folder, name), name);
  const uploads = new Map<string, PromiseWithResolvers<void>>();
  const putFile = (_key: string, file: string): Promise<void> => {
    const upload = Promise.withResolvers<void>();
    uploads.set(file.slice(file.lastIndexOf("/") + 1), upload);
    return upload.promise;
  };
  const store = { putFile } as unknown as Store;
  const contents = new Contents({ dataDirectory, store, archive: new Archive(emptyManifest()) });
  expect(contents.lag).toBeNull();
  contents.add(`${folder}/one`, 1_000);
  contents.add(`${folder}/other`, 2_000);
  // A second record of it is no later content.
  contents.add(`${folder}/one`, 3_000);
  await contents.settle(50);
  expect(contents.lag).toEqual({ since: 1_000, bytes: 8 });
  uploads.get("one")?.resolve();
  await contents.settle(50);
  expect(contents.lag).toEqual({ since: 2_000, bytes: 5 });
  uploads.get("other")?.resolve();
  await contents.settle(50);
  expect(contents.lag).toBeNull();
});
