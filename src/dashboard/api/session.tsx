import { notifications } from "@mantine/notifications";
import { type QueryKey, useMutation, useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import type { SignedInKey } from "../../client/admin/administrator.ts";
import { messageOf, queries, SESSION_KEY, server } from "./server.ts";

/** What a page has allBegun with the rights of a key: it is finished with them, and nobody else sees it. */
export interface Begun {
  /** Before the session is ended by a sign-out. */
  finish(): Promise<unknown>;
  /** When the session has ended: whatever is left belongs to nobody. */
  forget(): void;
}

const allBegun = new Set<Begun>();

/** Called as soon as something is kept beside the cache of queries; the same one counts once. */
export const endsWithSession = (one: Begun): void => void allBegun.add(one);

const finishBegun = (): Promise<unknown> => Promise.all([...allBegun].map((one) => one.finish()));

function forgetBegun(): void {
  for (const one of allBegun) one.forget();
}

const KEY = SESSION_KEY;

/** The code of a link that opened this page, such as `/admin#code=…`; it is removed from the address at once. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
let linkCode = takeCode();

const askAgain = (): void => void queries.invalidateQueries({ queryKey: KEY });

/** Signs in by links that are opened on this page: one that differs from its address in the code alone loads no page. */
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

/** All tabs have the cookie of one session: each tells the others that another one has begun, or that it has ended. */
const tabs = new BroadcastChannel("platform.admin");
const tellTabs = (): void => tabs.postMessage(null);

/** What this tab has begun is not finished with the rights of a key that has signed in in another one. */
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

/** The key of a session, which may have ended by itself: its pages stay behind the sign-in, with what was typed in them. */
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

/** The session of a key that has been signed in with, here or in another tab. */
function begun(key: SignedInKey): Session {
  const before = known();
  if (before !== null && before.key.name !== key.name) forget();
  else if (before?.hasEnded === true) {
    forgetBegun();
    void queries.invalidateQueries({ predicate: isOfPages });
  }
  return { key, hasEnded: false };
}

/** `data` null: nobody is signed in. */
export const useSession = () =>
  useQuery({
    queryKey: KEY,
    queryFn: current,
    staleTime: Number.POSITIVE_INFINITY,
    // Somebody may have signed in in another tab, such as with a link.
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

/** Forgets everything that has been loaded and begun. */
function forget(): void {
  forgetBegun();
  queries.removeQueries({ predicate: isOfPages });
}

/** Finishes what waits, ends the session, and forgets everything that has been loaded. */
export async function signOut(): Promise<void> {
  await finishBegun();
  try {
    await server.signOut();
  } catch (error) {
    // A script cannot remove its cookie: whoever comes next would be signed in.
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

/** What the key of the session may do: `may("kv", "namespace", "*", "read")`. `*` in a right is: any. */
export function useRights() {
  const signedIn = useContext(Rights);
  const scopes = signedIn?.scopes ?? [];
  return {
    name: signedIn?.name ?? "",
    isRoot: signedIn?.name === "root",
    may: (...right: [area: string, kind: string, name: string, action: string]): boolean => allows(scopes, right),
  };
}
