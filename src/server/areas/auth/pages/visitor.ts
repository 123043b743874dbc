import type { Millis } from "../../../../kernel/clock.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { PagesConfig } from "../../../config/types.ts";
import { ownOrigin } from "../../../http/exchange/own-origin.ts";
import { ACCESS_TOKEN_TTL_SECONDS, PAGE_SESSION_EXTENDED_MS, PAGE_VISIT_TTL_MS } from "../limits.ts";
import { endSession } from "../service/sessions.ts";
import type { AuthDeps, CodeFor } from "../sessions/deps.ts";
import { refreshTtlMsOf } from "../sessions/sign-in.ts";
import { sessionById, touchSession } from "../statements/sessions.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import { type ApiAnswer, type ApiCall, callApi, type OwnServer } from "./api.ts";
import type { Style } from "./assets.ts";
import type { PageCookies } from "./cookies.ts";
import type { Language } from "./texts/languages.ts";

/** A session that a browser has below the path of the pages. */
export interface PagesSession {
  account: SecretAccount;
  sessionId: string;
  tokenVersion: number;
  /** Time of the user's last proof of identity. */
  provedAt: Millis;
  /** Whether it has begun here; otherwise it is that of an application, for a while. */
  isOwn: boolean;
}

interface Back {
  to: string;
  challenge: string;
  until: Millis;
}

export interface SessionRef {
  userId: string;
  sessionId: string;
  tokenVersion: number;
}

/** State of a browser's visit, between two pages. A sealed cookie holds it: nothing of it is in an address. */
export interface Visit {
  /** The application that gets a code. */
  back: Back | null;
  /** The anonymous user of that application, whose account signing up continues. */
  anonymous: SessionRef | null;
  /** The token of a mailed link, by its page. */
  link: { page: string; token: string } | null;
  mfaTicket: string | null;
  /** The kinds of factors that the ticket asks for. */
  factors: string[];
  /** Whether a code was sent to the phone for the ticket. */
  isTexted: boolean;
  /** A visit to a provider. `provider`: to link an account there; null: to sign in. */
  oauth: { verifier: string; provider: string | null } | null;
  /** The session that an application has sent here, until the button is pressed. */
  ticket: SessionRef | null;
  /** The address to which a code was mailed. */
  email: string | null;
  /** The number to which a code was sent that signs in. */
  phone: string | null;
  /** The number that the account is to have, once its code is typed. */
  newPhone: string | null;
  /** Message that the next page shows. */
  notice: string | null;
  /** Whether the account asked for a new sign-in. */
  isAgain: boolean;
}

/** State of a browser that is in the middle of nothing. */
export const NO_VISIT: Readonly<Visit> = {
  back: null,
  anonymous: null,
  link: null,
  mfaTicket: null,
  factors: [],
  isTexted: false,
  oauth: null,
  ticket: null,
  email: null,
  phone: null,
  newPhone: null,
  notice: null,
  isAgain: false,
};

/** The parts that all pages need. */
export interface PagesDeps {
  auth: AuthDeps;
  config: PagesConfig;
  server: OwnServer;
  cookies: PageCookies;
  language: (accepted: string | null) => Language;
  style: Style;
  /** The path of the pages in a browser: a proxy may serve this server below a path of its own. */
  base: () => string;
}

/** One request of a browser at the pages. */
export class Visitor {
  readonly request: Request;
  readonly deps: PagesDeps;
  readonly language: Language;
  readonly visit: Visit;
  /** Whether the browser reaches the server by https. */
  readonly isSecure: boolean;
  readonly now: Millis;
  /** Whether the browser sent a visit. */
  readonly hasVisit: boolean;
  session: PagesSession | null;
  readonly #before: string;
  #sessionCookie: string | null = null;

  constructor(request: Request, deps: PagesDeps) {
    const { auth, cookies, language } = deps;
    this.request = request;
    this.deps = deps;
    this.now = auth.clock.now();
    this.isSecure = request.url.startsWith("https:") || auth.publicUrl().startsWith("https:");
    this.language = language(request.headers.get("accept-language"));
    const kept = cookies.read(request.headers, "visit", this);
    this.hasVisit = kept !== null;
    // Sealed by `headers`.
    this.visit = { ...NO_VISIT, ...(kept as Partial<Visit> | null) };
    if (this.visit.back !== null && this.visit.back.until <= this.now)
      Object.assign(this.visit, { back: null, anonymous: null });
    this.#before = JSON.stringify(this.visit);
    this.session = this.#sessionOf(cookies.read(request.headers, "session", this));
  }

  /** Lists the origins at which browsers have the pages. */
  get origins(): string[] {
    return [new URL(this.deps.auth.publicUrl()).origin, ownOrigin(this.request)];
  }

  /** Returns the path of a page for a link. */
  path(page: string): string {
    return page === "" ? this.deps.base() : `${this.deps.base()}/${page}`;
  }

  #sessionOf(kept: JsonObject | null): PagesSession | null {
    const { sessionId, tokenVersion, isOwn } = kept ?? {};
    if (typeof sessionId !== "string" || typeof tokenVersion !== "number") return null;
    return this.sessionAt({ sessionId, tokenVersion, isOwn: isOwn === true });
  }

  /** Returns a session that is live; null otherwise. */
  sessionAt({
    sessionId,
    tokenVersion,
    isOwn,
  }: Pick<PagesSession, "sessionId" | "tokenVersion" | "isOwn">): PagesSession | null {
    const { sql } = this.deps.auth.file;
    const session = sessionById.get(sql, { id: sessionId });
    if (session === null || session.expiresAt <= this.now || session.tokenVersion !== tokenVersion) return null;
    const account = userById.get(sql, { id: session.userId });
    if (account === null || account.disabled) return null;
    return { account, sessionId, tokenVersion, provedAt: session.provedAt, isOwn };
  }

  /** Calls an endpoint as the user of the session, if there is one. */
  async call(target: Parameters<typeof callApi>[2], call: ApiCall = {}): Promise<ApiAnswer> {
    return callApi(this.deps.server, this.request, target, {
      accessToken: await this.accessToken(this.session),
      ...call,
    });
  }

  /** Calls an endpoint as nobody: a sign-in. Where an application waits for a code, it is asked for. */
  signIn(target: Parameters<typeof callApi>[2], body: JsonObject): Promise<ApiAnswer> {
    return callApi(this.deps.server, this.request, target, { body, codeFor: this.codeFor });
  }

  get codeFor(): CodeFor | null {
    const { back, anonymous } = this.visit;
    return back === null ? null : { challenge: back.challenge, replaces: anonymous?.sessionId ?? null };
  }

  async accessToken(
    session: Pick<PagesSession, "account" | "sessionId" | "tokenVersion"> | null,
  ): Promise<string | null> {
    return session === null
      ? null
      : this.deps.auth.tokens.access(session.account, session.sessionId, session.tokenVersion);
  }

  /** Keeps a session in the browser. A session of an application lasts as long as an access token: whoever has stolen one gets nothing lasting. */
  keepSession({ sessionId, tokenVersion, isOwn }: Pick<PagesSession, "sessionId" | "tokenVersion" | "isOwn">): void {
    const { config } = this.deps.auth;
    const shortMs = (config.session?.accessTokenTtl ?? ACCESS_TOKEN_TTL_SECONDS) * SECOND_MS;
    const until = this.now + (isOwn ? refreshTtlMsOf(config) : shortMs);
    this.#sessionCookie = this.deps.cookies.set(
      "session",
      { sessionId, tokenVersion, isOwn },
      { ...this.#sealed, until },
    );
    this.session = this.sessionAt({ sessionId, tokenVersion, isOwn });
  }

  /** Extends the session of a user who comes back, at most once an hour. */
  async extendSession(): Promise<void> {
    const { session } = this;
    if (session === null || !session.isOwn) return;
    const { file, config } = this.deps.auth;
    const present = sessionById.get(file.sql, { id: session.sessionId });
    if (present === null || this.now - present.lastUsedAt < PAGE_SESSION_EXTENDED_MS) return;
    await file.write((write) => {
      const row = sessionById.get(write.tx, { id: session.sessionId });
      if (row === null) return;
      const expiresAt = write.now + refreshTtlMsOf(config);
      touchSession.run(write.tx, { ...row, lastUsedAt: write.now, expiresAt });
      write.extended(row.id, expiresAt);
    });
    this.keepSession(session);
  }

  dropSession(): void {
    this.session = null;
    this.#sessionCookie = this.deps.cookies.remove("session", this.#sealed);
  }

  /** Ends the session, also that of an application. */
  async endSession(): Promise<void> {
    const { session } = this;
    this.dropSession();
    if (session === null) return;
    await endSession(this.deps.auth, session.account.id, session.sessionId).catch(() => {
      // It has ended meanwhile.
    });
  }

  /** Returns the cookies of the answer. */
  get setCookies(): string[] {
    const { cookies } = this.deps;
    const text = JSON.stringify(this.visit);
    const made = this.#sessionCookie === null ? [] : [this.#sessionCookie];
    // Over plain http browsers send no Sec-Fetch-Site: a form is known by the cookie then.
    const isNeeded = !this.hasVisit && !this.request.headers.has("sec-fetch-site");
    if (text === this.#before && !isNeeded) return made;
    const until = this.now + PAGE_VISIT_TTL_MS;
    return [...made, cookies.set("visit", JSON.parse(text), { ...this.#sealed, until })];
  }

  get #sealed(): { isSecure: boolean; now: Millis } {
    return { isSecure: this.isSecure, now: this.now };
  }
}
