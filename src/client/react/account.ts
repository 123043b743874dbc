import { createElement, type ReactNode, useEffect } from "react";
import { useAuth, useUser } from "./provider.ts";

/** Shows its children while somebody is signed in, an anonymous user too. */
export const SignedIn = ({ children }: { children?: ReactNode }): ReactNode => (useUser() === null ? null : children);

/** Shows its children while nobody is signed in. */
export const SignedOut = ({ children }: { children?: ReactNode }): ReactNode => (useUser() === null ? children : null);

export interface AccountButtonProps {
  /** Text while nobody is signed in, or an anonymous user; "Sign in" by default. */
  signIn?: string;
  /** Text of the account of a user without a name and an address; "Account" by default. */
  account?: string;
  /** Page to which a sign-in leads back; the present one by default. */
  returnTo?: string;
  className?: string;
  /** Called with what went wrong; thrown in a promise by default. */
  onError?: (error: unknown) => void;
}

/**
 * Signs in at the pages of the server, and opens the account page. While it is shown, it completes the sign-in with which the
 * browser comes back. Errors: `Error` without a provider.
 */
export function AccountButton({
  signIn = "Sign in",
  account = "Account",
  returnTo,
  className,
  onError,
}: AccountButtonProps): ReactNode {
  const { user, auth } = useAuth();
  const reported = (work: Promise<unknown>): void => {
    work.catch((error: unknown) => {
      if (onError === undefined) throw error;
      onError(error);
    });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new `onError` is no new visit.
  useEffect(() => reported(auth.redirectResult()), [auth]);
  const isKnown = user !== null && !user.isAnonymous;
  const open = async (): Promise<void> => {
    if (isKnown) location.assign(await auth.accountPage());
    else await auth.signInWithPage(returnTo === undefined ? {} : { returnTo });
  };
  const text = isKnown ? user.displayName || user.email || account : signIn;
  return createElement("button", { type: "button", className, onClick: () => reported(open()) }, text);
}
