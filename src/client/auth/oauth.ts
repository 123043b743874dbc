import type { ClientContext } from "../context.ts";
import { pause } from "../runtime.ts";
import { localError } from "../transport/errors.ts";
import type { Own, SignIns } from "./sign-in.ts";
import type { SignInResult } from "./types.ts";

/** Interval between checks whether the sign-in window has returned. */
const OAUTH_POPUP_POLL_MS = 100;

interface Options {
  redirectTo?: string;
  popup?: boolean;
}

/** Returns the address of a page; by default of this one, without its fragment. */
const addressOf = (page = location.href.replace(/#.*/, "")): string => new URL(page, location.href).href;

export function createOAuth({ transport, runtime }: ClientContext, { complete, post }: SignIns, own: Own) {
  /**
   * Session-storage key that marks this tab as having left for a provider, or for the pages of the server: then it has the verifier of
   * the code. Without the mark, tokens and codes in an address are ignored: anyone can make a link that would sign its reader in as
   * somebody else.
   */
  const mark = `platform.oauth@${transport.url("")}`;
  /** Leaves the page. What is kept is "" for a provider, and the verifier for the pages. */
  const leave = (address: string, kept: string): Promise<never> => {
    sessionStorage[mark] = kept;
    location.assign(address);
    return new Promise(() => {});
  };
  /** Signs in with the fragment that a provider redirected to; null for an unrelated fragment. */
  async function finish(fragment: string): Promise<SignInResult | null> {
    const {
      error,
      error_description: reason,
      mfa_ticket: mfaTicket,
      refresh_token: refreshToken,
    } = Object.fromEntries(new URLSearchParams(fragment.slice(1)));
    if (error) throw localError("forbidden", reason || error);
    if (mfaTicket) return complete({ mfaRequired: true, mfaTicket });
    // Its answer has the user too.
    return refreshToken ? complete(await post("refresh", { refreshToken })) : null;
  }

  /** Waits until the window is back at this origin, where its address is readable. */
  async function fragmentOf(popup: Window): Promise<string> {
    for (;;) {
      await pause(runtime, OAUTH_POPUP_POLL_MS);
      if (popup.closed) throw new DOMException("Window closed", "AbortError");
      try {
        const { hash } = popup.location;
        if (hash !== "") return hash;
      } catch {
        // The window is at the provider.
      }
    }
  }

  return {
    async begin(provider: string, { redirectTo, popup = false }: Options = {}) {
      const address = transport.url(`/api/auth/oauth/${encodeURIComponent(provider)}`, {
        redirect_url: addressOf(redirectTo),
      });
      if (!popup) return leave(address, "");
      const opened = open(address, "_blank", "popup,width=480,height=640");
      if (opened === null) throw new DOMException("Window blocked", "NotAllowedError");
      try {
        const result = await finish(await fragmentOf(opened));
        if (result === null) throw localError("invalid", "No result");
        return result;
      } finally {
        opened.close();
      }
    },

    accountPage: async () => (await own<{ url: string }>("POST", "pages/ticket")).url,

    async signInWithPage({ returnTo }: { returnTo?: string } = {}): Promise<never> {
      // As the signed-in user: the account of a guest goes on when it signs up.
      const begun = await own<{ url: string; codeVerifier: string }>("POST", "pages/begin", {
        returnTo: addressOf(returnTo),
      });
      return leave(begun.url, begun.codeVerifier);
    },

    async redirectResult(): Promise<SignInResult | null> {
      const codeVerifier: string | undefined = sessionStorage[mark];
      const here = new URL(location.href);
      const { hash, searchParams } = here;
      const code = searchParams.get("code");
      if (codeVerifier === undefined || !(codeVerifier ? code : hash)) return null;
      delete sessionStorage[mark];
      if (codeVerifier) searchParams.delete("code");
      else here.hash = "";
      // Keeps what signs in out of the history.
      history.replaceState(history.state, "", here);
      return codeVerifier ? complete(await post("pages/redeem", { code, codeVerifier })) : finish(hash);
    },
  };
}
