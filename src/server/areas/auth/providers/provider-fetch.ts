import type { CustomFetchOptions } from "openid-client";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { outgoingFetch } from "../../../http/outgoing/call.ts";
import { PROVIDER_ANSWER_MAX_BYTES, PROVIDER_TIMEOUT_SECONDS } from "../limits.ts";

// Apart from requests.ts, which needs the library: keys of issuers are read without it.

/** Sends a request of the library, which gives the same time to each, in a signal. */
export function providerFetch(url: string, { method, headers, body, signal }: CustomFetchOptions): Promise<Response> {
  const timeout = signal ?? AbortSignal.timeout(PROVIDER_TIMEOUT_SECONDS * SECOND_MS);
  return outgoingFetch(url, { method, headers, body, signal: timeout, maxBytes: PROVIDER_ANSWER_MAX_BYTES });
}
