import { useQuery } from "@tanstack/react-query";
import type { Administrator } from "../../../client/admin/administrator.ts";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { ADDRESS_STALE_MS, SIGNED_AT_ONCE_MAX } from "./limits.ts";

/**
 * A picture, a film or a download carries no header that says who asks, so that its address is signed for the viewer. It is put on
 * this origin: that of signed links is `publicUrl`, which this page's policy does not allow.
 */
function ownAddress(server: Administrator, bucket: string, key: string, signed: string): string {
  return `${server.storage(bucket).url(key)}${new URL(signed).search}`;
}

/** Addresses of these files, by key. Those that are gone have none. */
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
