import { PAGE_VISIT_TTL_MS, RETURN_TO_MAX_CHARACTERS } from "../limits.ts";
import { allowedRedirect } from "../means/redirect.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { deleteSecret, findSecret } from "../statements/secrets.ts";
import { handleAccountForm, isAnswer, pictureKey } from "./account-forms.ts";
import { accountPage } from "./account-page.ts";
import { factorNamed, factorPage, postFactor } from "./factor-pages.ts";
import type { Fault } from "./faults.ts";
import { asksForSignIn, faultOf } from "./faults.ts";
import { askAgain } from "./finish.ts";
import { type Form, isFault, isOwnForm, readForm } from "./forms.ts";
import { type Answer, answerOf } from "./layout.ts";
import {
  forgotPage,
  invitePage,
  magicPage,
  postForgot,
  postInvite,
  postMagic,
  postReset,
  postVerify,
  resetPage,
  verifyPage,
} from "./link-pages.ts";
import { html } from "./markup.ts";
import { phoneCodePage, phonePage } from "./phone-pages.ts";
import { backFromProvider, leadToProvider } from "./provider-pages.ts";
import {
  codePage,
  nameOf,
  postContinue,
  postSignIn,
  postSignUp,
  signInPage,
  signUpPage,
  waysOf,
} from "./sign-in-pages.ts";
import { filled } from "./texts/languages.ts";
import type { PagesDeps, SessionRef } from "./visitor.ts";
import { Visitor } from "./visitor.ts";

interface Page {
  /** Whether the config enables it; true by default. */
  isThere?: (visitor: Visitor) => boolean;
  show?: (visitor: Visitor, query: URLSearchParams) => Answer | Promise<Answer>;
  send?: (visitor: Visitor, form: Form) => Answer | Promise<Answer>;
}

const withPasswords = (visitor: Visitor): boolean => waysOf(visitor).hasPasswords;

const PAGES: Readonly<Record<string, Page>> = {
  "sign-in": {
    show: (visitor, query) => {
      const [way, ways] = [query.get("with"), waysOf(visitor)];
      if (way === "code" && ways.hasCodes) return codePage(visitor);
      if (way === "phone" && ways.hasPhones) return phonePage(visitor);
      return way === "phone-code" && ways.hasPhones ? phoneCodePage(visitor) : signInPage(visitor);
    },
    send: postSignIn,
  },
  continue: { send: postContinue },
  factor: {
    show: (visitor, query) => factorPage(visitor, { by: factorNamed(visitor, query.get("with")) }),
    send: postFactor,
  },
  "sign-up": {
    isThere: (visitor) => waysOf(visitor).hasSignUp,
    show: (visitor) => signUpPage(visitor),
    send: postSignUp,
  },
  "forgot-password": { isThere: withPasswords, show: (visitor) => forgotPage(visitor), send: postForgot },
  "reset-password": { isThere: withPasswords, show: (visitor) => resetPage(visitor), send: postReset },
  "magic-link": {
    isThere: (visitor) => waysOf(visitor).hasLinks,
    show: (visitor) => magicPage(visitor),
    send: postMagic,
  },
  "verify-email": {
    show: (visitor) => verifyPage(visitor, "verify-email"),
    send: (visitor) => postVerify(visitor, "verify-email"),
  },
  "verify-email-change": {
    show: (visitor) => verifyPage(visitor, "verify-email-change"),
    send: (visitor) => postVerify(visitor, "verify-email-change"),
  },
  "accept-invite": { show: (visitor) => invitePage(visitor), send: postInvite },
  oauth: { isThere: (visitor) => waysOf(visitor).providers.length > 0, show: backFromProvider },
  open: { show: ticketPage, send: openTicket },
  account: { show: showAccount, send: sendAccount },
};

/** Answers a request for a page. `page`: empty for the path itself. */
export async function answerPage(deps: PagesDeps, request: Request, page: string): Promise<Response> {
  const visitor = new Visitor(request, deps);
  return answerOf(visitor, await pageOf(visitor, page));
}

async function pageOf(visitor: Visitor, name: string): Promise<Answer> {
  const query = new URL(visitor.request.url).searchParams;
  if (name === "") return { location: visitor.path(visitor.session === null ? "sign-in" : "account") };
  const page = Object.hasOwn(PAGES, name) ? PAGES[name] : undefined;
  if (page === undefined || page.isThere?.(visitor) === false) return nothing(visitor);
  if (visitor.request.method === "POST") {
    if (page.send === undefined) return nothing(visitor, { status: 405, text: "failed" });
    const form = await readForm(visitor);
    return isFault(form) ? nothing(visitor, form) : page.send(visitor, form);
  }
  if (page.show === undefined) return { location: visitor.path("sign-in") };
  return (await takeQuery(visitor, name, query)) ?? page.show(visitor, query);
}

function nothing(visitor: Visitor, fault: Fault = { status: 404, text: "notFound" }): Answer {
  const { texts } = visitor.language;
  return {
    title: texts.signIn,
    body: html`<nav><a href="${visitor.path("sign-in")}">${texts.backToSignIn}</a></nav>`,
    fault,
  };
}

/**
 * Takes what an address holds into the browser's cookie, and leads to the page without it: neither the history nor a `Referer` has a
 * token. Returns null where there is nothing to take. [AU335]
 */
async function takeQuery(visitor: Visitor, page: string, query: URLSearchParams): Promise<Answer | null> {
  const { visit } = visitor;
  const token = query.get("token");
  const ticket = query.get("ticket");
  const returnTo = query.get("return_to");
  if (token !== null && token.length <= RETURN_TO_MAX_CHARACTERS) {
    visit.link = { page, token };
    return { location: visitor.path(page) };
  }
  if (returnTo !== null && (page === "sign-in" || page === "sign-up")) {
    const challenge = query.get("code_challenge") ?? "";
    const back = returnOf(visitor, returnTo, challenge);
    const guest = ticket === null ? null : await takeTicket(visitor.deps.auth, ticket);
    // What another application began is over.
    Object.assign(visit, {
      back,
      anonymous: back === null ? null : guest,
      mfaTicket: null,
      factors: [],
      isTexted: false,
      oauth: null,
      isAgain: false,
    });
    if (back === null) visit.notice = visitor.language.texts.returnRefused;
    return { location: visitor.path(page) };
  }
  if (ticket === null || page !== "account") return null;
  visit.ticket = await takeTicket(visitor.deps.auth, ticket);
  return { location: visitor.path("open") };
}

const CHALLENGE = /^[\w-]{43}$/;

/** Returns where a sign-in leads back to, if `auth.redirectUrls` allows it, or it is of the pages' own origin. [AU342] */
function returnOf(visitor: Visitor, text: string, challenge: string): NonNullable<Visitor["visit"]["back"]> | null {
  if (text.length > RETURN_TO_MAX_CHARACTERS || !CHALLENGE.test(challenge)) return null;
  const { config } = visitor.deps.auth;
  const url = URL.parse(text);
  const isOwn = url !== null && url.username === "" && url.password === "" && visitor.origins.includes(url.origin);
  const found = isOwn ? url : allowedRedirect(text, config.redirectUrls ?? [], { anyLoopbackPort: true });
  return found === null ? null : { to: found.href, challenge, until: visitor.now + PAGE_VISIT_TTL_MS };
}

/** Uses a ticket up. Returns the session that it stands for; null for one that is wrong, used or too old. */
function takeTicket({ file, sealing }: AuthDeps, ticket: string): Promise<SessionRef | null> {
  return file.write((write) => {
    const hash = sealing.digest("page-ticket", ticket);
    const found = findSecret.get(write.tx, { hash, purpose: "page-ticket", now: write.now });
    if (found === null) return null;
    deleteSecret.run(write.tx, { hash });
    const { sessionId, tokenVersion } = found.payload;
    if (found.userId === null || typeof sessionId !== "string" || typeof tokenVersion !== "number") return null;
    return { userId: found.userId, sessionId, tokenVersion };
  });
}

/** Says whose account an application opens, and asks for a press: a link of somebody else's must not make this browser theirs. */
function ticketPage(visitor: Visitor): Answer {
  const { texts } = visitor.language;
  const session = sessionOfTicket(visitor);
  if (session === null) return nothing(visitor, { status: 400, text: "linkInvalid" });
  const name = nameOf(session.account, texts.guest);
  const body = html`<p>${filled(texts.accountOf, { name })}</p><form method="post" action="${visitor.path("open")}"><button class="main">${texts.openAccount}</button></form>`;
  return { title: texts.account, body };
}

const sessionOfTicket = (visitor: Visitor) =>
  visitor.visit.ticket === null ? null : visitor.sessionAt({ ...visitor.visit.ticket, isOwn: false });

function openTicket(visitor: Visitor): Answer {
  const session = sessionOfTicket(visitor);
  visitor.visit.ticket = null;
  if (session === null) return nothing(visitor, { status: 400, text: "linkInvalid" });
  visitor.keepSession(session);
  return { location: visitor.path("account") };
}

async function showAccount(visitor: Visitor): Promise<Answer> {
  await visitor.extendSession();
  const { session } = visitor;
  return session === null ? { location: visitor.path("sign-in") } : accountPage(visitor, session);
}

async function sendAccount(visitor: Visitor, form: Form): Promise<Answer> {
  if (visitor.session === null) return { location: visitor.path("sign-in") };
  const handled = await handleAccountForm(visitor, form);
  if (isAnswer(handled)) return handled;
  const { session } = visitor;
  return session === null ? { location: visitor.path("sign-in") } : accountPage(visitor, session, handled);
}

/** Leads to a provider of OAuth. */
export async function answerProvider(deps: PagesDeps, request: Request, provider: string): Promise<Response> {
  const visitor = new Visitor(request, deps);
  if (!waysOf(visitor).providers.includes(provider)) return answerOf(visitor, nothing(visitor));
  const { answer, cookie } = await leadToProvider(visitor, provider);
  const response = answerOf(visitor, answer);
  if (cookie !== null) response.headers.append("set-cookie", cookie);
  return response;
}

/** Returns what the script of the pages asks an authenticator for. */
export async function answerPasskey(deps: PagesDeps, request: Request, step: string): Promise<Response> {
  const visitor = new Visitor(request, deps);
  const isAdding = step === "add";
  if (!waysOf(visitor).hasPasskeys || (!isAdding && step !== "sign-in")) return answerOf(visitor, nothing(visitor));
  if (!isOwnForm(visitor)) return answerOf(visitor, nothing(visitor, { status: 403, text: "otherSite" }));
  const answer = isAdding
    ? await visitor.call("POST /api/auth/passkeys/register-options")
    : await visitor.call("POST /api/auth/passkeys/auth-options", { accessToken: null });
  const again = isAdding && asksForSignIn(answer) ? askAgain(visitor) : null;
  const body = again !== null && "location" in again ? again : answer.body;
  const headers = new Headers({ "content-type": "application/json", "cache-control": "no-store" });
  for (const cookie of visitor.setCookies) headers.append("set-cookie", cookie);
  return new Response(JSON.stringify(body), { status: again === null ? answer.status : 200, headers });
}

/** Answers a press on "Export my data" with the file, or with the sign-in that it asks for. */
export async function answerExport(deps: PagesDeps, request: Request): Promise<Response> {
  const visitor = new Visitor(request, deps);
  if (!isOwnForm(visitor)) return answerOf(visitor, nothing(visitor, { status: 403, text: "otherSite" }));
  const { session } = visitor;
  const token = await visitor.accessToken(session);
  if (session === null || token === null) return answerOf(visitor, { location: visitor.path("sign-in") });
  const { server } = deps;
  const address = new URL("/api/auth/me/export", request.url).href;
  const headers = { authorization: `Bearer ${token}` };
  const answer = await server.answer(server.inPlaceOf(request, new Request(address, { headers })));
  if (answer.ok) return answer;
  const { status } = answer;
  await answer.body?.cancel();
  if (status === 401) return answerOf(visitor, askAgain(visitor));
  const fault = faultOf({ status, ok: false, headers: answer.headers, body: {} });
  return answerOf(visitor, await accountPage(visitor, session, { fault, section: "export" }));
}

/** Returns the user's picture, as far as the rules of its bucket let the user read it. */
export async function answerPicture(deps: PagesDeps, request: Request): Promise<Response> {
  const visitor = new Visitor(request, deps);
  const key = pictureKey(visitor);
  const token = await visitor.accessToken(visitor.session);
  if (key === null || token === null) return answerOf(visitor, nothing(visitor));
  const { server } = deps;
  const address = new URL(`/api/storage/${deps.config.pictures}/${key}`, request.url).href;
  const answer = await server.answer(
    server.inPlaceOf(request, new Request(address, { headers: { authorization: `Bearer ${token}` } })),
  );
  const type = answer.headers.get("content-type") ?? "";
  if (!answer.ok || !/^image\/(?:png|jpeg|webp|gif)$/.test(type)) {
    await answer.body?.cancel();
    return answerOf(visitor, nothing(visitor));
  }
  return new Response(answer.body, { headers: { "content-type": type, "cache-control": "private, no-store" } });
}
