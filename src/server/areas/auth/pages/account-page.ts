import type { JsonObject } from "../../../../kernel/json/json.ts";
import { sessionsOf } from "../service/sessions.ts";
import { factorsOfUser, identitiesOfUser, passkeysOfUser } from "../statements/means.ts";
import { pictureKey } from "./account-forms.ts";
import { type Answer, actionForm, fieldOf, hidden, passwordMin, type Shown, section } from "./layout.ts";
import { Html, html } from "./markup.ts";
import { phoneFactor, phoneSection, recoveryList } from "./phone-sections.ts";
import { providerName } from "./provider-names.ts";
import { nameOf, waysOf } from "./sign-in-pages.ts";
import { filled } from "./texts/languages.ts";
import type { PagesSession, Visitor } from "./visitor.ts";

const SESSIONS_SHOWN_MAX = 50;

/** The account of the session. */
export async function accountPage(visitor: Visitor, session: PagesSession, shown: Shown = {}): Promise<Answer> {
  const { texts } = visitor.language;
  const ways = waysOf(visitor);
  const { email, passwordHash } = session.account;
  const body = html`<p>${(email ?? session.account.phone) === null || session.account.displayName === null ? nameOf(session.account, texts.guest) : html`${session.account.displayName} <small>${email ?? session.account.phone}</small>`}</p>
${actionForm(visitor, "sign-out", html`<button>${texts.signOut}</button>`)}
${await profile(visitor, session, shown)}
${email === null ? null : addressSection(visitor, session, shown)}
${ways.hasPasswords && email !== null ? passwordSection(visitor, passwordHash !== null, shown) : null}
${visitor.deps.auth.config.phones === undefined ? null : phoneSection(visitor, session, shown)}
${ways.hasPasskeys ? passkeySection(visitor, session) : null}
${await factorSection(visitor, session, shown)}
${ways.providers.length > 0 ? providerSection(visitor, session) : null}
${sessionSection(visitor, session)}
${exportSection(visitor)}
${deletionSection(visitor)}`;
  return { title: texts.account, body, fault: shown.fault ?? null };
}

async function profile(visitor: Visitor, { account }: PagesSession, { section: wrong }: Shown): Promise<Html> {
  const { texts } = visitor.language;
  const initials = Array.from(nameOf(account, texts.guest).trim()).slice(0, 1).join("").toUpperCase();
  const shown =
    pictureKey(visitor) === null
      ? html`<span class="initials" aria-hidden="true">${initials}</span>`
      : html`<img src="${visitor.path("picture")}" alt="${texts.picture}">`;
  const upload = html`<form method="post" enctype="multipart/form-data" action="${visitor.path("account")}">${hidden("action", "picture")}
<div class="picture">${shown}<div><label for="picture">${texts.picture}</label>
<input id="picture" name="picture" type="file" accept="image/png,image/jpeg,image/webp,image/gif" required></div></div><button>${texts.save}</button></form>`;
  const name = actionForm(
    visitor,
    "name",
    html`${fieldOf({ name: "name", label: texts.name, autocomplete: "name", value: account.displayName ?? "", isOptional: true, isWrong: wrong === "name" })}<button>${texts.save}</button>`,
  );
  return section(
    "profile",
    texts.name,
    html`${visitor.deps.config.pictures === undefined ? html`<div class="picture">${shown}</div>` : upload}${name}`,
  );
}

function addressSection(visitor: Visitor, { account }: PagesSession, { section: wrong }: Shown): Html {
  const { texts } = visitor.language;
  const unverified = html`<p>${texts.unverified}</p>${actionForm(visitor, "verification", html`<button>${texts.sendVerification}</button>`)}`;
  const isWrong = wrong === "email";
  const password = fieldOf({
    name: "emailPassword",
    label: texts.currentPassword,
    type: "password",
    autocomplete: "current-password",
    isWrong,
  });
  const change = html`${fieldOf({ name: "newEmail", label: texts.newEmail, type: "email", autocomplete: "email", isWrong })}
${account.passwordHash === null ? null : password}<button>${texts.changeEmail}</button>`;
  return section(
    "email",
    texts.email,
    html`<p>${account.email}</p>${account.emailVerified ? null : unverified}${actionForm(visitor, "email", change)}`,
  );
}

function passwordSection(visitor: Visitor, hasPassword: boolean, { section: wrong }: Shown): Html {
  const { texts } = visitor.language;
  if (!hasPassword) {
    const mail = actionForm(visitor, "mail-password", html`<button>${texts.mailPassword}</button>`);
    return section("password", texts.password, html`<p>${texts.noPassword}</p>${mail}`);
  }
  const minLength = passwordMin(visitor.deps.auth.config);
  const hint = filled(texts.passwordRule, { count: minLength });
  const isWrong = wrong === "password";
  const fields = html`${fieldOf({ name: "currentPassword", label: texts.currentPassword, type: "password", autocomplete: "current-password", isWrong })}
${fieldOf({ name: "newPassword", label: texts.newPassword, type: "password", autocomplete: "new-password", minLength, hint, isWrong })}<button>${texts.save}</button>`;
  return section("password", texts.password, actionForm(visitor, "password", fields));
}

/** A list whose entries have a button each. */
function entries(visitor: Visitor, action: string, button: string, list: readonly { id: string; text: Html }[]): Html {
  const entry = ({ id, text }: { id: string; text: Html }) =>
    html`<li><span>${text}</span>${actionForm(visitor, action, html`${hidden("id", id)}<button>${button}</button>`)}</li>`;
  return list.length === 0 ? html`` : html`<ul>${list.map(entry)}</ul>`;
}

function passkeySection(visitor: Visitor, { account }: PagesSession): Html {
  const { texts } = visitor.language;
  const list = passkeysOfUser
    .all(visitor.deps.auth.file.sql, { userId: account.id })
    .map(({ id, name, createdAt }) => ({
      id,
      text: html`${name ?? texts.passkeys} <small>${dateOf(visitor, createdAt)}</small>`,
    }));
  const add = html`<form method="post" action="${visitor.path("account")}" data-passkey="add" hidden>${hidden("action", "passkey")}${hidden("passkey", "")}<button>${texts.addPasskey}</button></form>
<noscript><p>${texts.needsJavaScript}</p></noscript>`;
  return section(
    "passkeys",
    texts.passkeys,
    html`<p>${texts.passkeysText}</p>${entries(visitor, "passkey-remove", texts.remove, list)}${add}`,
  );
}

const dateOf = ({ language }: Visitor, time: number): string =>
  new Intl.DateTimeFormat(language.tag, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" }).format(time);

async function factorSection(visitor: Visitor, session: PagesSession, shown: Shown): Promise<Html | null> {
  const { mfa } = visitor.deps.auth.config;
  const parts: (Html | null)[] = [
    ...(mfa?.totp === true ? [await appFactor(visitor, session, shown)] : []),
    ...(mfa?.phone === true ? [phoneFactor(visitor, session, shown)] : []),
  ];
  return parts.every((part) => part === null) ? null : section("factor", visitor.language.texts.factor, html`${parts}`);
}

/** The second factor by an authenticator app. */
async function appFactor(
  visitor: Visitor,
  { account }: PagesSession,
  { enrolment, section: wrong }: Shown,
): Promise<Html> {
  const { texts } = visitor.language;
  const begun = wrong === "factor" ? enrolment : undefined;
  const isOn = factorsOfUser
    .all(visitor.deps.auth.file.sql, { userId: account.id })
    .some(({ type, verified }) => type === "totp" && verified);
  const code = fieldOf({
    name: "code",
    label: texts.code,
    autocomplete: "one-time-code",
    isNumeric: true,
    isWrong: wrong === "factor" && begun === undefined,
  });
  if (isOn)
    return html`<p>${texts.factorOn}</p>${actionForm(visitor, "factor-remove", html`${code}<button>${texts.turnOff}</button>`)}`;
  if (begun === undefined)
    return html`<p>${texts.factorOff}</p>${actionForm(visitor, "factor-begin", html`<button>${texts.setUp}</button>`)}`;
  const verify = actionForm(
    visitor,
    "factor-verify",
    html`${hidden("factorId", String(begun["factorId"]))}${code}<button class="main">${texts.confirm}</button>`,
  );
  return html`${await enrolmentParts(visitor, begun)}${verify}`;
}

/** The key of a factor as a picture and a text, and the recovery codes. */
async function enrolmentParts(visitor: Visitor, { uri, secret, recoveryCodes }: JsonObject): Promise<Html | null> {
  const { texts } = visitor.language;
  if (typeof uri !== "string" || typeof secret !== "string" || !Array.isArray(recoveryCodes)) return null;
  // Loaded here: few pages need it.
  const { renderSVG } = await import("uqr");
  const picture = new Html(renderSVG(uri, { border: 0 }));
  return html`<p>${texts.factorScan}</p><div class="qr" role="img" aria-label="QR">${picture}</div><p><code>${secret}</code></p>
${recoveryList(visitor, recoveryCodes)}`;
}

function providerSection(visitor: Visitor, { account }: PagesSession): Html {
  const { texts } = visitor.language;
  const linked = identitiesOfUser.all(visitor.deps.auth.file.sql, { userId: account.id });
  const list = linked.map(({ id, provider, email }) => ({
    id,
    text: html`${providerName(provider)} <small>${email}</small>`,
  }));
  const others = waysOf(visitor).providers.filter((name) => !linked.some(({ provider }) => provider === name));
  const link = (name: string): Html =>
    actionForm(
      visitor,
      "identity-link",
      html`${hidden("id", name)}<button>${filled(texts.link, { provider: providerName(name) })}</button>`,
    );
  return section(
    "providers",
    texts.providers,
    html`${entries(visitor, "identity-remove", texts.remove, list)}${others.map(link)}`,
  );
}

function sessionSection(visitor: Visitor, { account, sessionId, tokenVersion }: PagesSession): Html {
  const { texts } = visitor.language;
  const all = sessionsOf(visitor.deps.auth, { userId: account.id, sessionId, tokenVersion }).slice(
    0,
    SESSIONS_SHOWN_MAX,
  );
  const described = ({ userAgent, ip, lastUsedAt }: (typeof all)[number]): Html =>
    html`${browserOf(userAgent)} <small>${ip} · ${filled(texts.lastUsed, { time: dateOf(visitor, Date.parse(lastUsedAt)) })}</small>`;
  const others = all.filter(({ current }) => !current).map((session) => ({ id: session.id, text: described(session) }));
  const own = all
    .filter(({ current }) => current)
    .map((session) => html`<li><span>${described(session)}</span> <strong>${texts.thisBrowser}</strong></li>`);
  return section(
    "sessions",
    texts.sessions,
    html`<ul>${own}</ul>${entries(visitor, "session-end", texts.end, others)}`,
  );
}

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg/, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\//, "Firefox"],
  [/Chrome\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
];

/** Returns a short name of a browser and its system, and the beginning of what another client says of itself. */
function browserOf(userAgent: string | null): string {
  const named = (list: typeof BROWSERS) => list.find(([pattern]) => pattern.test(userAgent ?? ""))?.[1];
  const found = [named(BROWSERS), named(SYSTEMS)].filter((name) => name !== undefined);
  return found.length > 0 ? found.join(", ") : (userAgent ?? "–").slice(0, 40);
}

function exportSection(visitor: Visitor): Html {
  const { texts } = visitor.language;
  const form = html`<form method="post" action="${visitor.path("export")}"><button>${texts.dataExport}</button></form>`;
  return section("export", texts.dataExport, html`<p>${texts.dataExportText}</p>${form}`);
}

function deletionSection(visitor: Visitor): Html {
  const { texts } = visitor.language;
  const content = html`<label><input type="checkbox" name="sure" value="1" required> ${texts.deletionSure}</label><button class="bad">${texts.deletion}</button>`;
  return section(
    "deletion",
    texts.deletion,
    html`<p>${texts.deletionText}</p><details><summary>${texts.next}</summary>${actionForm(visitor, "delete", content)}</details>`,
  );
}
