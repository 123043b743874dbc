import type { Administrator } from "../../../client/admin/administrator.ts";
import { BATCH_MAX } from "../../limits.ts";
import { deleteSoon as deleteLater, inTurn, useHidden } from "../../parts/undo.tsx";
import { keyOf, pathOf, type TableAddress } from "./address.ts";
import { reloadRows } from "./rows.ts";

/** The names of records that are about to be deleted: see `hiddenName`. */
export { useHidden };

/** Records of several tables have the same id, such as a user's. */
export const hiddenName = (address: TableAddress, id: string): string => JSON.stringify([...keyOf(address), id]);

/** Hides these records, and deletes them ten seconds later as `server` acts: with View as, the rules of that user are asked. */
export function deleteSoon(server: Administrator, address: TableAddress, ids: readonly string[]): void {
  const batches = Array.from({ length: Math.ceil(ids.length / BATCH_MAX) }, (_, index) =>
    ids.slice(index * BATCH_MAX, (index + 1) * BATCH_MAX),
  );
  deleteLater({
    names: ids.map((id) => hiddenName(address, id)),
    message: ids.length === 1 ? "One record deleted" : `${ids.length} records deleted`,
    run: (sending) =>
      inTurn(
        sending,
        batches.map((deletes) => () => {
          const options = { ...sending, body: { deletes }, idempotent: true };
          return server.request("POST", `${pathOf(address)}/batch`, options);
        }),
      ),
    done: () => reloadRows(address),
  });
}
