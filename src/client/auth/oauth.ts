import type { ClientContext } from "../context.ts";
import { pause } from "../runtime.ts";
import { localError } from "../transport/errors.ts";
import type { SignIns } from "./sign-in.ts";
import type { SignInResult, User } from "./types.ts";

/** Interval between checks whether the sign-in window has returned. */
const OAUTH_POPUP_POLL_MS = 100;

interface Options {
  redirectTo?: string;
  popup?: boolean;
}

/**
 * Returns the session-storage key that marks this tab as having left for a provider. Without the mark, tokens in an address are
 * ignored: anyone can make a link that would sign its reader in as somebody else.
 */
export const oauthMark = (url: string): string => `platform.oauth@${new URL(url).host}`;

export function createOAuth({ options: { url }, transport, runtime }: ClientContext, { complete }: SignIns) {
  /** Signs in with the fragment that a provider redirected to; null for an unrelated fragment. */
  async function finish(fragment: string): Promise<SignInResult | null> {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    const [accessToken, refreshToken] = [given.get("access_token"), given.get("refresh_token")];
    const [mfaTicket, error] = [given.get("mfa_ticket"), given.get("error")];
    if (error !== null) {
      throw localError("forbidden", given.get("error_description") || error);
    }
    if (mfaTicket !== null) return complete({ mfaRequired: true, mfaTicket });
    if (accessToken === null || refreshToken === null) return null;
    const headers = { Authorization: `Bearer ${accessToken}` };
    const { user } = await transport.request<{ user: User }>("GET", "/api/auth/me", { headers, auth: false });
    return complete({ user, accessToken, refreshToken });
  }

  /** Waits until the window is back at this origin, where its address is readable. */
  async function fragmentOf(popup: Window): Promise<string> {
    for (;;) {
      await pause(runtime, OAUTH_POPUP_POLL_MS);
      if (popup.closed) throw new DOMException("The window was closed", "AbortError");
      try {
        const { hash } = popup.location;
        if (hash !== "") return hash;
      } catch {
        // The window is at the provider.
      }
    }
  }

  return {
    async begin(provider: string, { redirectTo = location.href.split("#")[0] ?? "", popup = false }: Options = {}) {
      const target = new URL(redirectTo, location.href).href;
      const address = transport.url(`/api/auth/oauth/${encodeURIComponent(provider)}`, { redirect_url: target });
      if (!popup) {
        sessionStorage.setItem(oauthMark(url), "1");
        location.assign(address);
        return new Promise<never>(() => {});
      }
      const opened = open(address, "_blank", "popup,width=480,height=640");
      if (opened === null) throw new DOMException("The browser has blocked the window", "NotAllowedError");
      try {
        const result = await finish(await fragmentOf(opened));
        if (result !== null) return result;
        throw localError("invalid", "The provider gave no result");
      } finally {
        opened.close();
      }
    },

    async redirectResult(): Promise<SignInResult | null> {
      if (sessionStorage.getItem(oauthMark(url)) === null || location.hash === "") return null;
      const { hash } = location;
      sessionStorage.removeItem(oauthMark(url));
      // Keeps the tokens out of the history.
      history.replaceState(history.state, "", location.pathname + location.search);
      return finish(hash);
    },
  };
}
