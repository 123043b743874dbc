import { EVENTS_DATA_MAX_BYTES } from "../limits.ts";
import type { Entry } from "./change-log.ts";
import type { ChangeType } from "./visibility.ts";

/**
 * The messages for one request's changes of a channel: one for each, or a single one from `batchThreshold` on. Records are
 * JSON already. Those that are too large, or beyond EVENTS_DATA_MAX_BYTES together, are left out and marked. [RT18, RT100]
 */
export function encodeChanges(
  channel: { name: string; table: string; feed: string | null },
  entries: readonly Entry[],
  types: readonly (ChangeType | null)[],
  batchThreshold: number,
): string[] {
  const feed = channel.feed === null ? "" : `,"feed":${JSON.stringify(channel.feed)}`;
  const about = `"channel":${JSON.stringify(channel.name)}${feed}`;
  const head = `{"type":"db_change",${about},"table":${JSON.stringify(channel.table)}`;
  const messages: string[] = [];
  let dataLeft = EVENTS_DATA_MAX_BYTES;
  for (const [index, entry] of entries.entries()) {
    const type = types[index] ?? null;
    if (type === null) continue;
    const text = type === "removed" ? "null" : entry.text;
    const bytes = text === null ? Number.POSITIVE_INFINITY : Buffer.byteLength(text);
    const isTruncated = bytes > dataLeft;
    if (!isTruncated) dataLeft -= bytes;
    const data = isTruncated ? `null,"truncated":true` : text;
    messages.push(
      `${head},"changeType":"${type}","docId":${JSON.stringify(entry.change.id)},"data":${data},"timestamp":"${entry.timestamp}","seq":${entry.seq}}`,
    );
  }
  if (messages.length < batchThreshold) return messages;
  const all = messages.join(",");
  return [`{"type":"batch_changes",${about},"changes":[${all}],"total":${messages.length}}`];
}
