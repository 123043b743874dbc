import type { JsonObject } from "../../../kernel/json/json.ts";
import type { ServerMessage } from "../../socket/types.ts";

/** What a subscription says about one record: its state from now on. */
export type Change =
  | { readonly id: string; readonly kind: "put"; readonly record: JsonObject }
  /** It is gone, or no longer matches. */
  | { readonly id: string; readonly kind: "remove" }
  /** It has changed, and is too large for a message. */
  | { readonly id: string; readonly kind: "reread" };

/** `db_change`, and a member of `batch_changes`. */
interface ChangeMessage {
  changeType: "added" | "modified" | "removed";
  docId: string;
  data: JsonObject | null;
  seq: number;
}

function changeOf({ docId: id, changeType, data }: ChangeMessage): Change {
  if (changeType === "removed") return { id, kind: "remove" };
  return data === null ? { id, kind: "reread" } : { id, kind: "put", record: data };
}

/** The changes of a message, in order, and the number of the last one. */
export function changesOf(message: ServerMessage): { changes: Change[]; seq: number } {
  // Of the server, which the types of its messages describe.
  const all = (message.type === "batch_changes" ? message["changes"] : [message]) as readonly ChangeMessage[];
  return { changes: all.map(changeOf), seq: all.at(-1)?.seq ?? 0 };
}
