import { SECOND_MS } from "../../../kernel/time/duration.ts";

/** The bytes of a file to answer with; `end` is exclusive. */
export type RangeChoice = { kind: "whole" } | { kind: "part"; start: number; end: number } | { kind: "unsatisfiable" };

const WHOLE: RangeChoice = { kind: "whole" };

/**
 * Chooses the bytes by RFC 9110, 14: one range of bytes. Several ranges, other units and malformed headers are ignored, as the RFC
 * allows.
 */
export function chooseRange(header: string | null, sizeBytes: number): RangeChoice {
  const match = header === null ? null : /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header);
  if (match === null) return WHOLE;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return WHOLE;
    const suffixBytes = Number(last);
    if (suffixBytes === 0 || sizeBytes === 0) return { kind: "unsatisfiable" };
    return { kind: "part", start: Math.max(0, sizeBytes - suffixBytes), end: sizeBytes };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return WHOLE;
  if (start >= sizeBytes) return { kind: "unsatisfiable" };
  return { kind: "part", start, end: last === "" ? sizeBytes : Math.min(sizeBytes, Number(last) + 1) };
}

/** Evaluates `If-None-Match`: weak comparison, a list, or `*`. RFC 9110, 13.1.2. */
function matchesEtag(header: string | null, etag: string): boolean {
  if (header === null) return false;
  // Prevents splitting a header with thousands of other tags.
  if (!header.includes(etag) && header.trim() !== "*") return false;
  if (header.trim() === "*") return true;
  return header.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}

/**
 * Whether the client's copy is current: by `If-None-Match`, and by `If-Modified-Since` only where the request has no such header.
 * `modifiedMs` null: unknown. RFC 9110, 13.2.2.
 */
export function isUnmodified(
  headers: Headers,
  { etag, modifiedMs }: { etag: string; modifiedMs: number | null },
): boolean {
  const tags = headers.get("if-none-match");
  if (tags !== null || modifiedMs === null) return matchesEtag(tags, etag);
  const since = Date.parse(headers.get("if-modified-since") ?? "");
  // Dates of headers have whole seconds. A comparison with NaN is false.
  return Math.floor(modifiedMs / SECOND_MS) * SECOND_MS <= since;
}

/** Whether `If-Range`, which must be the exact entity tag or date, lets a `Range` apply. RFC 9110, 13.1.5. */
export function rangeStillValid(ifRange: string | null, etag: string, lastModified: string): boolean {
  return ifRange === null || ifRange === etag || ifRange === lastModified;
}
