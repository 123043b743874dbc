import type { Cors } from "../cors.ts";
import { NOSNIFF } from "../security-headers.ts";

/**
 * Returns the headers of an answer that has no others than every answer has. `Response` copies them, so one object serves all
 * answers: Bun copies `Headers` six times as quickly as it reads an object with the same members. null: this answer needs other
 * headers as well.
 */
export type CommonHeaders = (request: Request, requestId: string) => Headers | null;

/** Creates the common headers. `others`: further headers, such as a content type. */
export function createCommonHeaders(cors: Cors, others: Readonly<Record<string, string>> = {}): CommonHeaders {
  const shared = new Headers({ ...NOSNIFF, ...others });
  return (request, requestId) => {
    if (cors.isConcerned(request)) return null;
    shared.set("x-request-id", requestId);
    return shared;
  };
}
