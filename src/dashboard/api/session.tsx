import { notifications } from "@mantine/notifications";
import { type QueryKey, useMutation, useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import type { SignedInKey } from "../../client/admin/administrator.ts";
import { messageOf, queries, SESSION_KEY, server } from "./server.ts";

/** Work that a page started with the rights of a key: it must finish with these rights, and stay invisible to other keys. */
export interface Begun {
  /** Finishes the work before a sign-out. */
  finish(): Promise<unknown>;
  /** Discards the rest when the session has ended. */
  forget(): void;
}

const allBegun = new Set<Begun>();

/** Registers state kept outside of the query cache. Registering the same one again has no effect. */
export const endsWithSession = (one: Begun): void => void allBegun.add(one);

const finishBegun = (): Promise<unknown> => Promise.all([...allBegun].map((one) => one.finish()));

function forgetBegun(): void {
  for (const one of allBegun) one.forget();
}

const KEY = SESSION_KEY;

/** Takes the code of a link that opened this page, such as `/admin#code=…`, and removes it from the address. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
let linkCode = takeCode();

const askAgain = (): void => void queries.invalidateQueries({ queryKey: KEY });

/** Signs in by links opened on this page: an address that differs only in the code loads no page. */
export function useLinks(): void {
  useEffect(() => {
    const changed = (): void => {
      linkCode = takeCode() ?? linkCode;
      if (linkCode !== null) askAgain();
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
}

/** Notifies other tabs when a session starts or ends, as all tabs share one cookie. */
const tabs = new BroadcastChannel("platform.admin");
const tellTabs = (): void => tabs.postMessage(null);

/** Rereads the session when another tab changes it, so that work of this tab does not finish with the rights of another key. */
export function useOtherTabs(): void {
  useEffect(() => {
    tabs.addEventListener("message", askAgain);
    return () => tabs.removeEventListener("message", askAgain);
  }, []);
}

async function signInByCode(code: string): Promise<SignedInKey | null> {
  try {
    const key = await server.signIn({ code });
    tellTabs();
    return key;
  } catch (error) {
    notifications.show({ color: "red", title: "The link does not sign in", message: messageOf(error) });
    return null;
  }
}

/** Key of a session. If the session expires, its pages stay behind the sign-in, with their input. */
interface Session {
  key: SignedInKey;
  hasEnded: boolean;
}

const known = (): Session | null => queries.getQueryData<Session | null>(KEY) ?? null;

async function current(): Promise<Session | null> {
  const code = linkCode;
  linkCode = null;
  const byCode = code === null ? null : await signInByCode(code);
  const key = byCode ?? (await server.current());
  if (key !== null) return begun(key);
  const before = known();
  return before === null ? null : { ...before, hasEnded: true };
}

/** Starts the session of a key that signed in here or in another tab. */
function begun(key: SignedInKey): Session {
  const before = known();
  if (before !== null && before.key.name !== key.name) forget();
  else if (before?.hasEnded === true) {
    forgetBegun();
    void queries.invalidateQueries({ predicate: isOfPages });
  }
  return { key, hasEnded: false };
}

/** Returns the query of the session. `data` null: nobody is signed in. */
export const useSession = () =>
  useQuery({
    queryKey: KEY,
    queryFn: current,
    staleTime: Number.POSITIVE_INFINITY,
    // Another tab may have signed in, for example by a link.
    refetchOnWindowFocus: ({ state: { data } }) => (data?.hasEnded === false ? false : "always"),
  });

export const useSignIn = () =>
  useMutation({
    mutationFn: (key: string) => server.signIn({ key }),
    onSuccess(key) {
      tellTabs();
      queries.setQueryData<Session>(KEY, begun(key));
    },
  });

const isOfPages = ({ queryKey }: { queryKey: QueryKey }): boolean => queryKey[0] !== KEY[0];

/** Discards all loaded data and started work. */
function forget(): void {
  forgetBegun();
  queries.removeQueries({ predicate: isOfPages });
}

/** Finishes waiting work, ends the session, and discards all loaded data. */
export async function signOut(): Promise<void> {
  await finishBegun();
  try {
    await server.signOut();
  } catch (error) {
    // Scripts cannot remove the session cookie: the next person at this browser would be signed in.
    notifications.show({ color: "red", title: "Not signed out", message: messageOf(error) });
    return;
  }
  tellTabs();
  queries.setQueryData(KEY, null);
  forget();
}

const Rights = createContext<SignedInKey | null>(null);

export function RightsProvider({ signedIn, children }: { signedIn: SignedInKey; children: ReactNode }) {
  return <Rights.Provider value={signedIn}>{children}</Rights.Provider>;
}

const allows = (scopes: readonly string[], right: readonly string[]): boolean =>
  scopes.some((scope) =>
    scope.split(":").every((part, index) => part === "*" || right[index] === "*" || part === right[index]),
  );

/** Returns a check of the key's rights: `may("kv", "namespace", "*", "read")`. `*` matches any. */
export function useRights() {
  const signedIn = useContext(Rights);
  const scopes = signedIn?.scopes ?? [];
  return {
    name: signedIn?.name ?? "",
    isRoot: signedIn?.name === "root",
    may: (...right: [area: string, kind: string, name: string, action: string]): boolean => allows(scopes, right),
  };
}
