import { useQuery } from "@tanstack/react-query";
import type { Administrator } from "../../../client/admin/administrator.ts";
import { useServer, useViewAs } from "../../shell/view-as.tsx";

/** Maximum number of signed addresses in one request, a limit of the server. */
export const SIGNED_AT_ONCE_MAX = 100;

/** State of the page, all of it in its address. */
export interface FilesState {
  bucket: string;
  /** Open folder with its trailing slash; absent: the top. */
  prefix: string;
  /** Prefix of names in the folder. */
  q: string;
  layout: Layout;
  /** Key of the open file. */
  file: string;
  /** Whether the unfinished uploads are open. */
  uploads: boolean;
}

export type Layout = "list" | "pictures";

/** Returns the last segment, without the slash of a folder. */
export const nameOf = (key: string): string => key.replace(/\/$/, "").split("/").at(-1) ?? key;

/** Returns the folders that contain a key or folder, from the top, each with its name. */
export function foldersOf(prefix: string): readonly { name: string; prefix: string }[] {
  const names = prefix.split("/").slice(0, -1);
  return names.map((name, index) => ({ name, prefix: `${names.slice(0, index + 1).join("/")}/` }));
}

export const hiddenName = (bucket: string, key: string): string => `files/${bucket}/${key}`;

const ADDRESS_STALE_MS = 30 * 60_000;

/**
 * Returns a signed address on this origin. Images, media and downloads cannot send an authorization header, so their address is
 * signed for the viewer. Signed links use `publicUrl`, which this page's content security policy does not allow.
 */
function ownAddress(server: Administrator, bucket: string, key: string, signed: string): string {
  return `${server.storage(bucket).url(key)}${new URL(signed).search}`;
}

/** Returns signed addresses of these files, by key. Deleted files have none. */
export function useAddresses(bucket: string, keys: readonly string[]) {
  const server = useServer();
  const as = useViewAs();
  return useQuery({
    queryKey: ["files", bucket, "addresses", as, keys],
    enabled: keys.length > 0,
    staleTime: ADDRESS_STALE_MS,
    async queryFn() {
      const parts = Array.from({ length: Math.ceil(keys.length / SIGNED_AT_ONCE_MAX) }, (_, index) =>
        server.storage(bucket).signedUrls(keys.slice(index * SIGNED_AT_ONCE_MAX, (index + 1) * SIGNED_AT_ONCE_MAX)),
      );
      const signed = (await Promise.all(parts)).flat();
      return new Map(signed.map(({ key, url }) => [key, ownAddress(server, bucket, key, url)]));
    },
  });
}
