import type { Server } from "bun";
import { CHALLENGE_BODY_MAX_BYTES, CHALLENGE_IDLE_SECONDS } from "./limits.ts";

export const HTTP_PORT_DEFAULT = 80;
const CHALLENGE_PATH = "/.well-known/acme-challenge/";
const TEXT = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };

export type HttpPort = ReturnType<typeof openHttpPort>;

/**
 * Opens an HTTP port that answers challenges of the certificate authority, and redirects everything else to HTTPS. `challenge`
 * returns the answer to a token, `redirect` the origin for a host; null: there is none. Errors: the port is not available.
 */
export function openHttpPort(options: {
  host: string;
  port: number;
  challenge: (token: string) => string | null;
  redirect: (host: string) => string | null;
}) {
  const answer = (request: Request): Response => {
    const url = URL.parse(request.url);
    // The target of CONNECT parses as a URL of any scheme.
    if (url?.protocol !== "http:") return new Response("The request has no host\n", { status: 400, headers: TEXT });
    if (url.pathname.startsWith(CHALLENGE_PATH)) {
      const text = options.challenge(url.pathname.slice(CHALLENGE_PATH.length));
      if (text !== null) return new Response(text, { headers: TEXT });
      return new Response("There is no such challenge\n", { status: 404, headers: TEXT });
    }
    const origin = options.redirect(url.hostname);
    if (origin === null) return new Response("This server answers by HTTPS\n", { status: 404, headers: TEXT });
    // 308 keeps the method and the body.
    return new Response(null, { status: 308, headers: { location: `${origin}${url.pathname}${url.search}` } });
  };
  const server = serve(options, answer);
  return { stop: (): Promise<void> => server.stop(true) };
}

function serve(
  { host, port }: { host: string; port: number },
  answer: (request: Request) => Response,
): Server<unknown> {
  try {
    return Bun.serve({
      hostname: host,
      port,
      idleTimeout: CHALLENGE_IDLE_SECONDS,
      maxRequestBodySize: CHALLENGE_BODY_MAX_BYTES,
      fetch: answer,
      error: () => new Response(null, { status: 500 }),
    });
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
    const reason = code === "EACCES" ? "ports below 1024 need elevated privileges" : code;
    throw Object.assign(
      new Error(`cannot listen on ${host}, port ${port} (HTTP, for server.tls): ${reason}`, { cause }),
      {
        code,
      },
    );
  }
}
