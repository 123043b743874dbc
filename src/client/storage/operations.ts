import type { ClientContext } from "../context.ts";
import { networkError, orNull } from "../transport/errors.ts";
import { filePath } from "./paths.ts";
import type { Bucket, FileEntry, FileMetadata, FilePage, FolderPage } from "./types.ts";
import { upload } from "./upload.ts";

interface StoredFile extends FileEntry {
  httpMetadata: { contentType: string };
  customMetadata: { [name: string]: string };
}

/** Response of a metadata change, without what the caller may not read. */
type ChangedFile = Pick<StoredFile, "key" | "customMetadata"> & Partial<StoredFile>;

type Paging = Parameters<Bucket["list"]>[0] & { delimiter?: string };
interface ListAnswer {
  objects: FileEntry[];
  truncated: boolean;
  cursor: string | null;
}

const metadataOf = <File extends ChangedFile>({ httpMetadata, customMetadata, ...entry }: File) => ({
  ...entry,
  ...(httpMetadata && { contentType: httpMetadata.contentType }),
  metadata: customMetadata,
});

/** Adds the thumbnail size. A signed address is valid for thumbnails too, as their size is not signed. */
const withThumb = (url: string, thumb: string | undefined): string =>
  thumb === undefined ? url : `${url}&thumb=${encodeURIComponent(thumb)}`;

/** Creates all operations but addresses. `bucket` is the path of the bucket. */
export function createOperations(context: ClientContext, bucket: string): Omit<Bucket, "url"> {
  const { transport } = context;
  const metadataPath = (key: string) => `${filePath(bucket, key)}/metadata`;
  const post = <T>(action: string, body: object) => transport.request<T>("POST", `${bucket}/${action}`, { body });
  const pageOf = async <Listed = FilePage>({ signal, ...query }: NonNullable<Paging> = {}) => {
    const answer = await transport.request<ListAnswer>("GET", bucket, { query, signal });
    const { objects: items, truncated: hasMore, ...others } = answer;
    // With a delimiter the others are `cursor` and `folders`, else `cursor` alone.
    return { ...others, items, hasMore } as Listed;
  };
  return {
    upload: (...given) => upload(context, bucket, ...given),
    async signedUrl(key, { thumb, ...options } = {}) {
      return withThumb((await post<{ url: string }>("signed-url", { key, ...options })).url, thumb);
    },
    async signedUrls(keys, { expiresIn, thumb } = {}) {
      const body = { keys, ...(expiresIn === undefined ? {} : { expiresIn: `${expiresIn}s` }) };
      const { urls } = await post<{ urls: { key: string; url: string }[] }>("signed-urls", body);
      return urls.map(({ key, url }) => ({ key, url: withThumb(url, thumb) }));
    },
    async download(key, { thumb, signal, maxBytes } = {}) {
      const path = filePath(bucket, key);
      const headers = maxBytes === undefined ? {} : { range: `bytes=0-${maxBytes - 1}` };
      const asked = transport.request<Response>("GET", path, { query: { thumb }, headers, signal, raw: true });
      // A range request for an empty file is answered with 416.
      const response = (await orNull(asked, 416)) ?? new Response();
      try {
        return await response.blob();
      } catch (cause) {
        signal?.throwIfAborted();
        throw networkError(transport.url(path), cause);
      }
    },
    list: pageOf,
    browse: (query) => pageOf<FolderPage>({ ...query, delimiter: "/" }),
    async metadata(key) {
      const file = await orNull(transport.request<StoredFile>("GET", metadataPath(key)));
      // Responses for whole files have a type.
      return file && (metadataOf(file) as FileMetadata);
    },
    async setMetadata(key, changes) {
      return metadataOf(await transport.request<ChangedFile>("PATCH", metadataPath(key), { body: changes }));
    },
    async delete(key) {
      await transport.request("DELETE", filePath(bucket, key));
    },
    deleteMany: (keys) => post("delete-batch", { keys }),
  };
}
