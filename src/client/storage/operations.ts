import type { ClientContext } from "../context.ts";
import { networkError, PlatformError } from "../transport/errors.ts";
import { filePath } from "./paths.ts";
import type { Bucket, FileEntry, FileMetadata } from "./types.ts";
import { upload } from "./upload.ts";

interface StoredFile extends FileEntry {
  httpMetadata: { contentType: string };
  customMetadata: { [name: string]: string };
}

const metadataOf = ({ httpMetadata, customMetadata, ...entry }: StoredFile): FileMetadata => ({
  ...entry,
  contentType: httpMetadata.contentType,
  metadata: customMetadata,
});

/** Everything but addresses. `bucket` is its path. */
export function createOperations(context: ClientContext, bucket: string): Omit<Bucket, "url"> {
  const { transport } = context;
  const metadataPath = (key: string) => `${filePath(bucket, key)}/metadata`;
  return {
    upload: (...given) => upload(context, bucket, ...given),
    async signedUrl(key, options) {
      const body = { key, ...options };
      return (await transport.request<{ url: string }>("POST", `${bucket}/signed-url`, { body })).url;
    },
    async download(key, { thumb, signal } = {}) {
      const path = filePath(bucket, key);
      const response = await transport.request<Response>("GET", path, { query: { thumb }, signal, raw: true });
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
  };
}
