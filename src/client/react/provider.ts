import { createContext, createElement, type ReactNode, useCallback, useContext, useSyncExternalStore } from "react";
import type { Auth, User } from "../auth/types.ts";
import type { Client } from "../client.ts";

interface Provided {
  client: { readonly auth: Auth };
  /** User of the server-side render. */
  renderedUser: User | null;
}

const Context = createContext<Provided | null>(null);

interface PlatformProviderProps {
  /** Client, created once outside of components; on a server once per request. */
  client: { readonly auth: Auth };
  /**
   * Value of `client.auth.user` during the server-side render, passed on both sides, so that hydration matches. Default: nobody.
   */
  user?: User | null;
  children?: ReactNode;
}

/** Provides the client to the hooks below it. */
export function PlatformProvider({ client, user = null, children }: PlatformProviderProps): ReactNode {
  // Not memoized: a provider renders with its owner, which passes new children anyway.
  return createElement(Context.Provider, { value: { client, renderedUser: user } }, children);
}

function useProvided(): Provided {
  const provided = useContext(Context);
  if (provided === null) throw new Error("There is no <PlatformProvider> around this component");
  return provided;
}

/** Returns the client of the provider. Errors: `Error` without one. */
export function useClient<Config = unknown>(): Client<Config> {
  // The provider holds the whole client, whose type is the caller's.
  return useProvided().client as Client<Config>;
}

export interface AuthResult {
  /** Signed-in user; null without one. */
  user: User | null;
  /** `client.auth`, for signing in and out. */
  auth: Auth;
}

/**
 * Returns the signed-in user, including on the server and in the first render of a browser. Errors: `Error` without a provider.
 */
export function useAuth(): AuthResult {
  const provided = useProvided();
  return { user: useUserOf(provided), auth: provided.client.auth };
}

/** Returns the signed-in user; null without one. Errors: `Error` without a provider. */
export const useUser = (): User | null => useUserOf(useProvided());

/** Returns the provider's client, which distinguishes queries of two servers; null without a provider. */
export const useProvidedClient = (): object | null => useContext(Context)?.client ?? null;

/** Returns the id of the signed-in user; null without one, or without a provider. */
export const useUserId = (): string | null => useUserOf(useContext(Context))?.id ?? null;

function useUserOf(provided: Provided | null): User | null {
  const auth = provided?.client.auth;
  const subscribe = useCallback((listener: () => void) => auth?.subscribe(listener) ?? (() => {}), [auth]);
  return useSyncExternalStore(
    subscribe,
    () => auth?.user ?? null,
    () => provided?.renderedUser ?? null,
  );
}

/** Returns the previous object while all of its members are equal, as React requires of snapshots. */
export function keepEqual<Result extends object>(): (next: Result) => Result {
  let last: Result | null = null;
  return (next) => {
    const names = Object.keys(next) as (keyof Result)[];
    const present = last;
    if (present === null || names.some((name) => !Object.is(present[name], next[name]))) last = next;
    return last ?? next;
  };
}
