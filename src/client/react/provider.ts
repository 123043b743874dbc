import { createContext, createElement, type ReactNode, useCallback, useContext, useSyncExternalStore } from "react";
import type { Auth, User } from "../auth/types.ts";
import type { Client } from "../client.ts";

interface Provided {
  client: { readonly auth: Auth };
  /** Who was signed in when the page was rendered on the server. */
  renderedUser: User | null;
}

const Context = createContext<Provided | null>(null);

interface PlatformProviderProps {
  /** Made once, outside of components; on a server one for each request. */
  client: { readonly auth: Auth };
  /**
   * What `client.auth.user` was when the server rendered the page, on both sides, so that the first render of the browser is the
   * server's. Default: nobody.
   */
  user?: User | null;
  children?: ReactNode;
}

/** Gives the client to the hooks below it. */
export function PlatformProvider({ client, user = null, children }: PlatformProviderProps): ReactNode {
  // Without a memo: a provider renders when its owner does, which gives it other children anyway.
  return createElement(Context.Provider, { value: { client, renderedUser: user } }, children);
}

function useProvided(): Provided {
  const provided = useContext(Context);
  if (provided === null) throw new Error("There is no <PlatformProvider> around this component");
  return provided;
}

/** The client of the provider. Errors: `Error` without one. */
export function useClient<Config = unknown>(): Client<Config> {
  // The provider has the whole client, whose type is the caller's.
  return useProvided().client as Client<Config>;
}

export interface AuthResult {
  /** The signed-in user; null when nobody is. */
  user: User | null;
  /** `client.auth`, to sign in and out. */
  auth: Auth;
}

/** Who is signed in, on the server and in the first render of a browser too. Errors: `Error` without a provider. */
export function useAuth(): AuthResult {
  const provided = useProvided();
  return { user: useUser(provided), auth: provided.client.auth };
}

/** The provider's client, by which queries of two servers differ; null without a provider. */
export const useProvidedClient = (): object | null => useContext(Context)?.client ?? null;

/** The id of who is signed in; null without a provider, too. */
export const useUserId = (): string | null => useUser(useContext(Context))?.id ?? null;

function useUser(provided: Provided | null): User | null {
  const auth = provided?.client.auth;
  const subscribe = useCallback((listener: () => void) => auth?.subscribe(listener) ?? (() => {}), [auth]);
  return useSyncExternalStore(
    subscribe,
    () => auth?.user ?? null,
    () => provided?.renderedUser ?? null,
  );
}

/** What React reads: the same object until one of its members has changed. */
export function keepEqual<Result extends object>(): (next: Result) => Result {
  let last: Result | null = null;
  return (next) => {
    const names = Object.keys(next) as (keyof Result)[];
    const present = last;
    if (present === null || names.some((name) => !Object.is(present[name], next[name]))) last = next;
    return last ?? next;
  };
}
