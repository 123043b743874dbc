import { useMutation } from "@tanstack/react-query";
import { useServer } from "../../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "../address.ts";
import { type Row, reloadRows, showRecord } from "../rows.ts";

/** Inserts a record, or changes the stored one, and shows the result in the grid. */
export function useSave(address: TableAddress, stored: Row | null) {
  const server = useServer();
  return useMutation({
    mutationFn: (body: Record<string, unknown>) =>
      stored === null
        ? server.request<Row>("POST", pathOf(address), { body, idempotent: true })
        : server.request<Row>("PATCH", `${pathOf(address)}/${encodeURIComponent(stored.id)}`, { body }),
    onSuccess(record) {
      showRecord(address, record);
      reloadRows(address);
    },
  });
}
