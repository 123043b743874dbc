import type { ClientContext } from "../context.ts";
import { networkError, PlatformError } from "../transport/errors.ts";
import { filePath } from "./paths.ts";
import type { Bucket, FileEntry, FileMetadata, FolderPage } from "./types.ts";

interface StoredFile extends FileEntry {
  httpMetadata: { contentType: string };
  customMetadata: { [name: string]: string };
}

const metadataOf = ({ httpMetadata, customMetadata, ...entry }: StoredFile): FileMetadata => ({
  ...entry,
  contentType: httpMetadata.contentType,
  metadata: customMetadata,
});

/** Everything but uploads and addresses. `bucket` is its path. */
export function createOperations({ transport }: ClientContext, bucket: string): Omit<Bucket, "upload" | "url"> {
  const metadataPath = (key: string) => `${filePath(bucket, key)}/metadata`;
  return {
    async signedUrl(key, options) {
      const body = { key, ...options };
      return (await transport.request<{ url: string }>("POST", `${bucket}/signed-url`, { body })).url;
    },
    async signedUrls(keys, { expiresIn } = {}) {
      const body = { keys, ...(expiresIn === undefined ? {} : { expiresIn: `${expiresIn}s` }) };
      const { urls } = await transport.request<{ urls: { key: string; url: string }[] }>(
        "POST",
        `${bucket}/signed-urls`,
        { body },
      );
      return urls.map(({ key, url }) => ({ key, url }));
    },
    async download(key, { thumb, signal, maxBytes } = {}) {
      const path = filePath(bucket, key);
      const headers = maxBytes === undefined ? {} : { range: `bytes=0-${maxBytes - 1}` };
      const response = await transport.request<Response>("GET", path, { query: { thumb }, headers, signal, raw: true });
      try {
        return await response.blob();
      } catch (cause) {
        signal?.throwIfAborted();
        throw networkError(transport.url(path), cause);
      }
    },
    async list({ signal, ...query } = {}) {
      const answer = await transport.request<{ objects: FileEntry[]; truncated: boolean; cursor: string | null }>(
        "GET",
        bucket,
        { query, signal },
      );
      return { items: answer.objects, hasMore: answer.truncated, cursor: answer.cursor };
    },
    async browse({ signal, ...query } = {}) {
      const { objects, folders, truncated, cursor } = await transport.request<{
        objects: FolderPage["items"];
        folders: string[];
        truncated: boolean;
        cursor: string | null;
      }>("GET", bucket, { query: { ...query, delimiter: "/" }, signal });
      return { folders, items: objects, hasMore: truncated, cursor };
    },
    async metadata(key) {
      try {
        return metadataOf(await transport.request<StoredFile>("GET", metadataPath(key)));
      } catch (error) {
        if (error instanceof PlatformError && error.status === 404) return null;
        throw error;
      }
    },
    async setMetadata(key, changes) {
      return metadataOf(await transport.request<StoredFile>("PATCH", metadataPath(key), { body: changes }));
    },
    async delete(key) {
      await transport.request("DELETE", filePath(bucket, key));
    },
    deleteMany: (keys) => transport.request("POST", `${bucket}/delete-batch`, { body: { keys } }),
  };
}
