import { bytesOf, encoded } from "./base64url.ts";
import { listen } from "./listeners.ts";
import { pause, systemRuntime } from "./runtime.ts";
import type { Store } from "./store.ts";

/** Of one cookie; browsers take 4,096 with its name and attributes. Longer values take several. */
const COOKIE_VALUE_MAX_CHARACTERS = 3_600;
/** For how long a tab looks for a cookie that another one says it has set, at most about twice this. */
const COOKIE_WAIT_MAX_MS = 5_000;

export interface CookieOptions {
  /** false: also over plain http. On a server true by default; in a page as the page itself. */
  secure?: boolean;
  /** `/` by default. */
  path?: string;
  /** Seconds; 28 days by default, as long as a session lasts that is not used. */
  maxAge?: number;
  /** The host alone by default; a domain for its subdomains too. */
  domain?: string;
}

export interface CookieStore extends Store {
  /** The values of `Set-Cookie` for what has changed since the request; empty where nothing has. */
  setCookies(): string[];
}

const DAY_SECONDS = 86_400;

function decoded(text: string): string | null {
  try {
    return new TextDecoder().decode(bytesOf(text));
  } catch {
    return null;
  }
}

const parsed = (header: string): Map<string, string> =>
  new Map(
    header.split(/;\s*/).flatMap((pair) => {
      const at = pair.indexOf("=");
      return at < 1 ? [] : [[pair.slice(0, at), pair.slice(at + 1)] as const];
    }),
  );

/**
 * A session in cookies, which a server that renders pages shares with its pages. On the server: `cookieStore(header)` with the
 * `Cookie` of the request, one store and one client for each request; `setCookies` gives what the answer has to set. In a page:
 * `cookieStore()`. The cookies have the session for one server; pages of their host can read them, as `localStorage`.
 */
export function cookieStore(header?: string | null, options: CookieOptions = {}): CookieStore {
  const isPage = header === undefined && typeof document !== "undefined";
  const { secure = !isPage || location.protocol === "https:", path = "/", maxAge = 28 * DAY_SECONDS, domain } = options;
  const attributes = `; Path=${path}; SameSite=Lax${secure ? "; Secure" : ""}${domain === undefined ? "" : `; Domain=${domain}`}`;
  const given = parsed(header ?? "");
  const changed = new Map<string, string>();
  const jar = () => (isPage ? parsed(document.cookie) : given);
  const channel = isPage && "BroadcastChannel" in globalThis ? new BroadcastChannel("platform.cookies") : null;

  const put = (name: string, value: string) => {
    const cookie = `${name}=${value}${attributes}; Max-Age=${value === "" ? 0 : maxAge}`;
    if (isPage) {
      // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is asynchronous, and missing on plain http
      document.cookie = cookie;
      return;
    }
    changed.set(name, cookie);
    if (value === "") given.delete(name);
    else given.set(name, value);
  };
  /** The host of the key is left out: a server may know the same API by another address than its pages. */
  const nameOf = (key: string, part: number) => `${key.split("@")[0]}${part === 0 ? "" : `.${part}`}`;
  const write = (key: string, value: string) => {
    const cookies = jar();
    for (let part = 0; part * COOKIE_VALUE_MAX_CHARACTERS < value.length || cookies.has(nameOf(key, part)); part++) {
      put(nameOf(key, part), value.substr(part * COOKIE_VALUE_MAX_CHARACTERS, COOKIE_VALUE_MAX_CHARACTERS));
    }
  };
  const change = (key: string, value: string | null) => {
    // Cookies cannot have all characters of JSON, and percent-encoding triples its quotes.
    write(key, value === null ? "" : encoded(new TextEncoder().encode(value)));
    channel?.postMessage({ key, value } satisfies Change);
  };

  const store: CookieStore = {
    get(key) {
      const cookies = jar();
      let text = "";
      for (let part = 0; cookies.has(nameOf(key, part)); part++) text += cookies.get(nameOf(key, part));
      return text === "" ? null : decoded(text);
    },
    set: change,
    remove: (key) => change(key, null),
    setCookies: () => [...changed.values()],
  };
  if (!isPage) return { ...store, lock: (_, work) => work() };
  return channel === null ? store : { ...store, subscribe: (listener) => heard(channel, store, listener) };
}

interface Change {
  key: string;
  value: string | null;
}

const heard = (channel: BroadcastChannel, store: Store, listener: (key: string) => void): (() => void) =>
  listen(channel, "message", async ({ data: { key, value } }: MessageEvent<Change>) => {
    // A tab may hear of another one's cookie before it sees it.
    for (let waitMs = 1; store.get(key) !== value && waitMs < COOKIE_WAIT_MAX_MS; waitMs *= 2) {
      await pause(systemRuntime, waitMs);
    }
    listener(key);
  });
