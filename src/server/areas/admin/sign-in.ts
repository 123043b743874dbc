import type { Clock } from "../../../kernel/clock.ts";
import { badField, unauthorized } from "../../../kernel/errors.ts";
import { clientNetwork } from "../../../kernel/network/addresses.ts";
import { ROOT_KEY_NAME, type ServiceKeyPrincipal, type ServiceKeys } from "../../access/keys/service-keys.ts";
import type { RateLimiter } from "../../http/rate-limit.ts";
import { COOKIES_LENGTH_MAX, SESSION_TTL_MS } from "./limits.ts";
import { useLinkCode } from "./links.ts";

interface Credentials {
  key?: string | null;
  code?: string | null;
}

/**
 * Returns the service key of these credentials. Errors: 400 without any; 401 for wrong ones; 403 for a key used from an address
 * outside its `ips`; 429 after too many wrong ones from one network.
 */
export type SignIn = (credentials: Credentials, address: () => string) => Promise<ServiceKeyPrincipal>;

export function createSignIn(deps: {
  dataDirectory: string;
  serviceKeys: ServiceKeys;
  clock: Clock;
  /** Rate limiter of failures, by client network. */
  failures: RateLimiter;
  /** Adds a failure to the audit log; resolves when it is on disk. */
  failed: (way: "key" | "code") => Promise<void>;
}): SignIn {
  const { serviceKeys, clock, failures } = deps;
  const identify = ({ key, code }: Credentials, address: () => string): ServiceKeyPrincipal => {
    if (typeof key === "string") return serviceKeys.identify(key, address);
    const isGood = typeof code === "string" && useLinkCode(deps.dataDirectory, code, { clock });
    const root = isGood ? serviceKeys.named(ROOT_KEY_NAME) : null;
    if (root === null) throw unauthorized("The link has been used, or is too old");
    return root;
  };
  return async (credentials, address) => {
    checkForm(credentials);
    const network = clientNetwork(address());
    failures.check(network);
    try {
      return identify(credentials, address);
    } catch (cause) {
      failures.count(network);
      await deps.failed(typeof credentials.key === "string" ? "key" : "code");
      throw cause;
    }
  };
}

/** Checks that there is a key or a code. Errors: 400 unless there is exactly one. */
function checkForm({ key = null, code = null }: Credentials): void {
  if (key === null && code === null) throw badField("key", "required", "key is required, or code");
  if (key !== null && code !== null) throw badField("code", "invalid_value", "code: it takes the place of key");
}

/**
 * Cookie of an administrator's session. Cookies ignore ports, so its name differs between servers. Over https the name begins with
 * `__Host-`, which neither another subdomain nor a page without https can set.
 */
export class SessionCookie {
  readonly #plain: string;
  readonly #host: string;
  readonly #isHttps: () => boolean;

  /** Creates the cookie. `isHttps`: whether browsers reach the server by https alone. */
  constructor(secret: string, isHttps: () => boolean) {
    const hash = new Bun.CryptoHasher("sha256").update(`admin cookie ${secret}`).digest("hex");
    this.#plain = `platform_admin_${hash.slice(0, 8)}`;
    this.#host = `__Host-${this.#plain}`;
    this.#isHttps = isHttps;
  }

  /** Returns the tokens in these headers: possibly several, as a page on another port or subdomain can add cookies. */
  read(headers: Headers): string[] {
    const cookies = headers.get("cookie");
    if (cookies === null || cookies.length > COOKIES_LENGTH_MAX) return [];
    const named = (name: string): string[] =>
      cookies.split(";").flatMap((cookie) => {
        const [found, value = ""] = cookie.trim().split("=", 2);
        return found === name && value !== "" ? [value] : [];
      });
    const safe = named(this.#host);
    return safe.length > 0 || this.#isHttps() ? safe : named(this.#plain);
  }

  /** Returns the `Set-Cookie` header that stores a token. */
  set(token: string, { isSecure }: { isSecure: boolean }): string {
    const name = isSecure ? this.#host : this.#plain;
    return `${name}=${token}; ${isSecure ? OF_HOST : OF_PLAIN}; Max-Age=${SESSION_TTL_MS / 1000}`;
  }

  /** Returns the `Set-Cookie` headers that remove the cookie. */
  remove(): string[] {
    return [`${this.#host}=; ${OF_HOST}; Max-Age=0`, `${this.#plain}=; ${OF_PLAIN}; Max-Age=0`];
  }
}

/** Attributes of the cookie. `SameSite=Lax` would send it when a link on another site is followed. */
const ATTRIBUTES = "HttpOnly; SameSite=Strict";
const OF_HOST = `${ATTRIBUTES}; Path=/; Secure`;
/** Attributes over http. Only the API reads the cookie, not the pages. */
const OF_PLAIN = `${ATTRIBUTES}; Path=/api`;
