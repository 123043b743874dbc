import { exportPKCS8, generateKeyPair, jwtVerify } from "jose";
import type { JsonObject } from "../../src/kernel/json/json.ts";

/** One call of `messages:send`, as received. */
export interface FcmCall {
  /** Registration token of the message. */
  token: string;
  message: JsonObject;
  at: number;
}

/**
 * Firebase Cloud Messaging on loopback. The token endpoint checks the signature and claims of its assertion, and messages are
 * accepted only with a token that it issued. The prefix of a registration token determines the response: `gone-` is unregistered,
 * `lost-` another 404, `quota-` 429 for ever, `broken-` 500 for ever, `slow-` 200 ms, `hang-` no response; `twice-` is refused
 * with 503 twice, `later-` once with 429 and `Retry-After: 1`.
 */
export interface FcmServer {
  readonly endpoint: string;
  readonly tokenEndpoint: string;
  readonly projectId: string;
  readonly serviceAccount: { client_email: string; private_key: string; private_key_id: string };
  readonly calls: readonly FcmCall[];
  /** Returns the accepted messages of a registration token, in order. */
  taken(token: string): JsonObject[];
  /** Number of access tokens issued. */
  readonly tokensGiven: number;
  /** Maximum number of concurrent calls. */
  readonly mostAtOnce: number;
  /** Lifetime in seconds of access tokens issued from now on; 3600 initially. */
  tokenLifeSeconds: number;
  /** Status of the token endpoint from now on; 200 initially. */
  tokenStatus: number;
  /** Transforms the response of the token endpoint; unchanged initially. */
  alterToken(answer: Response): Response | Promise<Response>;
  /** Revokes all access tokens issued so far. */
  revokeTokens(): void;
  stop(): Promise<void>;
}

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const SLOW_MS = 200;

const failure = (status: number, name: string, details: JsonObject[] = [], headers: Record<string, string> = {}) =>
  Response.json(
    { error: { code: status, message: `${name} was made up`, status: name, details } },
    { status, headers },
  );

const fcmError = (errorCode: string): JsonObject => ({
  "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
  errorCode,
});

export async function startFcmServer(): Promise<FcmServer> {
  const keys = await generateKeyPair("RS256", { extractable: true });
  const projectId = "film-club";
  const clientEmail = "sender@film-club.example";
  const calls: FcmCall[] = [];
  const takenByToken = new Map<string, JsonObject[]>();
  const triesByToken = new Map<string, number>();
  const goodTokens = new Set<string>();
  let tokensGiven = 0;
  let atOnce = 0;
  let mostAtOnce = 0;

  const giveToken = async (request: Request): Promise<Response> => {
    if (state.tokenStatus !== 200) return Response.json({ error: "made_up" }, { status: state.tokenStatus });
    const form = new URLSearchParams(await request.text());
    try {
      if (form.get("grant_type") !== "urn:ietf:params:oauth:grant-type:jwt-bearer") throw new Error("grant_type");
      const { payload } = await jwtVerify(form.get("assertion") ?? "", keys.publicKey, {
        ...{ algorithms: ["RS256"], issuer: clientEmail, audience: `${state.endpoint}/token` },
      });
      if (payload["scope"] !== SCOPE) throw new Error("scope");
      if ((payload.exp ?? 0) - (payload.iat ?? 0) > 3600) throw new Error("lives too long");
    } catch (cause) {
      return Response.json({ error: "invalid_grant", error_description: String(cause) }, { status: 400 });
    }
    const token = `ya29.${++tokensGiven}`;
    goodTokens.add(token);
    return Response.json({ access_token: token, expires_in: state.tokenLifeSeconds, token_type: "Bearer" });
  };

  const answer = async (token: string, tries: number): Promise<Response | null> => {
    switch (/^([a-z]+)-/.exec(token)?.[1]) {
      case "gone":
        return failure(404, "NOT_FOUND", [fcmError("UNREGISTERED")]);
      case "lost":
        return failure(404, "NOT_FOUND");
      case "quota":
        return failure(429, "RESOURCE_EXHAUSTED", [fcmError("QUOTA_EXCEEDED")]);
      case "broken":
        return failure(500, "INTERNAL");
      case "twice":
        return tries <= 2 ? failure(503, "UNAVAILABLE") : null;
      case "later":
        return tries === 1 ? failure(429, "RESOURCE_EXHAUSTED", [], { "retry-after": "1" }) : null;
      case "hang":
        return new Promise<never>(() => {});
      case "slow":
        await Bun.sleep(SLOW_MS);
        return null;
      default:
        return null;
    }
  };

  const send = async (request: Request): Promise<Response> => {
    const authorization = request.headers.get("authorization") ?? "";
    if (!goodTokens.has(authorization.replace(/^Bearer /, ""))) return failure(401, "UNAUTHENTICATED");
    const { message } = (await request.json()) as { message: JsonObject };
    const token = String(message["token"]);
    calls.push({ token, message, at: Date.now() });
    const tries = (triesByToken.get(token) ?? 0) + 1;
    triesByToken.set(token, tries);
    const refusal = await answer(token, tries);
    if (refusal !== null) return refusal;
    takenByToken.set(token, [...(takenByToken.get(token) ?? []), message]);
    return Response.json({ name: `projects/${projectId}/messages/${calls.length}` });
  };

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    routes: {
      "/token": {
        async POST(request) {
          return state.alterToken(await giveToken(request));
        },
      },
      [`/v1/projects/${projectId}/messages:send`]: {
        async POST(request) {
          atOnce += 1;
          mostAtOnce = Math.max(mostAtOnce, atOnce);
          try {
            return await send(request);
          } finally {
            atOnce -= 1;
          }
        },
      },
    },
    fetch: () => new Response("There is nothing here", { status: 404 }),
  });
  const endpoint = server.url.origin;
  const state: FcmServer = {
    ...{ endpoint, tokenEndpoint: `${endpoint}/token`, projectId, calls },
    serviceAccount: {
      ...{ client_email: clientEmail, private_key: await exportPKCS8(keys.privateKey), private_key_id: "key-1" },
    },
    taken: (token) => takenByToken.get(token) ?? [],
    get tokensGiven() {
      return tokensGiven;
    },
    get mostAtOnce() {
      return mostAtOnce;
    },
    tokenLifeSeconds: 3600,
    tokenStatus: 200,
    alterToken: (answer) => answer,
    revokeTokens: () => goodTokens.clear(),
    stop: () => server.stop(true),
  };
  return state;
}
