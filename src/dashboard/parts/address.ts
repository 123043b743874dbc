import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** A page does not know its own route: its module is loaded by it. */
const ANY = { strict: false } as never;

/** The parameters of the page's path, which the page names. */
export const usePathParameters = <Names extends string>(): Readonly<Record<Names, string>> =>
  useParams(ANY) as unknown as Record<Names, string>;

/** The state of a page, which is in its address so that a link shows the same. `change` keeps what it does not name. */
export function usePageState<State extends object>() {
  const state = useSearch(ANY) as unknown as Partial<State>;
  const navigate = useNavigate();
  const change = useCallback(
    (next: { [Name in keyof State]?: State[Name] | undefined }, options: { replace?: boolean } = {}) =>
      void navigate({ to: ".", search: ((before: object) => ({ ...before, ...next })) as never, ...options }),
    [navigate],
  );
  return { state, change };
}
