import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext } from "react";
import type { SignedInKey } from "../../../client/admin/administrator.ts";
import { finishBegun, forgetBegun } from "./begun.ts";
import { messageOf } from "./failure.ts";
import { queries, SESSION_KEY, server } from "./server.ts";

const KEY = SESSION_KEY;

/** The code of a link that opened this page, such as `/admin#code=…`; it is removed from the address at once. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
let linkCode = takeCode();

async function begin(): Promise<SignedInKey | null> {
  const code = linkCode;
  linkCode = null;
  if (code === null) return server.current();
  return (await server.signIn({ code }).catch(() => null)) ?? server.current();
}

/** The key of the session. `data` null: nobody is signed in. */
export const useSession = () => useQuery({ queryKey: KEY, queryFn: begin, staleTime: Number.POSITIVE_INFINITY });

export const useSignIn = () =>
  useMutation({
    mutationFn: (key: string) => server.signIn({ key }),
    onSuccess(signedIn) {
      // A session that has ended by itself leaves what another key may have loaded.
      forget();
      queries.setQueryData(KEY, signedIn);
    },
  });

/** Forgets everything that has been loaded and begun. */
function forget(): void {
  forgetBegun();
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
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
