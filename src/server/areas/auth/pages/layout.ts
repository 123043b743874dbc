import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { CaptchaConfig } from "../../../config/sections/auth.ts";
import type { PageTexts } from "../../../config/sections/page-texts.ts";
import type { ApiAnswer } from "./api.ts";
import type { Fault } from "./faults.ts";
import type { Form } from "./forms.ts";
import { Html, html } from "./markup.ts";
import { filled } from "./texts/languages.ts";
import type { Visitor } from "./visitor.ts";

/** A page, or where the browser goes next. */
export type Answer = { title: string; body: Html; status?: number; fault?: Fault | null } | { location: string };

const CAPTCHAS = {
  turnstile: {
    script: "https://challenges.cloudflare.com/turnstile/v0/api.js",
    sources: ["https://challenges.cloudflare.com"],
    element: "cf-turnstile",
    field: "cf-turnstile-response",
  },
  hcaptcha: {
    script: "https://js.hcaptcha.com/1/api.js",
    sources: ["https://hcaptcha.com", "https://*.hcaptcha.com"],
    element: "h-captcha",
    field: "h-captcha-response",
  },
} as const satisfies Record<CaptchaConfig["provider"], object>;

/** The name of the field in which the widget of a CAPTCHA puts its token. */
export const captchaField = (captcha: CaptchaConfig | undefined): string | null =>
  captcha === undefined ? null : CAPTCHAS[captcha.provider].field;

/** Returns the widget of the CAPTCHA that the config declares; nothing without one. */
export function captchaWidget({ deps, language }: Visitor): Html | null {
  const { captcha } = deps.auth.config;
  if (captcha === undefined) return null;
  const { element } = CAPTCHAS[captcha.provider];
  return html`<div class="${element}" data-sitekey="${captcha.siteKey}"></div>
    <noscript><p role="alert">${language.texts.needsJavaScript}</p></noscript>`;
}

/** The token of the CAPTCHA, where the config declares one. */
export function captchaOf({ deps }: Visitor, form: Form): JsonObject {
  const field = captchaField(deps.auth.config.captcha);
  return field === null ? {} : { captchaToken: form.text(field) };
}

/** Returns the answer of a page with its headers. */
export function answerOf(visitor: Visitor, answer: Answer): Response {
  // First: what a page says once is forgotten then.
  const text = "location" in answer ? null : documentOf(visitor, answer);
  const headers = new Headers({ "cache-control": "no-store", vary: "Accept-Language" });
  for (const cookie of visitor.setCookies) headers.append("set-cookie", cookie);
  if ("location" in answer) {
    headers.set("location", answer.location);
    return new Response(null, { status: 303, headers });
  }
  headers.set("content-type", "text/html; charset=utf-8");
  headers.set("content-language", visitor.language.tag);
  headers.set("content-security-policy", policyOf(visitor));
  headers.set("x-frame-options", "DENY");
  return new Response(text, { status: answer.status ?? answer.fault?.status ?? 200, headers });
}

/** Browsers ask `form-action` about the redirects that follow a form too: where a sign-in leads to is named. [AU333] */
function policyOf({ deps, visit }: Visitor): string {
  const { captcha } = deps.auth.config;
  const foreign = captcha === undefined ? [] : CAPTCHAS[captcha.provider].sources;
  const with_ = (...own: readonly string[]): string => [...own, ...foreign].join(" ");
  const ends = [visit.back?.to, deps.config.home].flatMap((address) =>
    address === undefined ? [] : (sourceOf(address) ?? []),
  );
  return [
    "default-src 'none'",
    `script-src ${with_("'self'")}`,
    `style-src ${with_("'self'")}`,
    "img-src 'self'",
    `connect-src ${with_("'self'")}`,
    ...(foreign.length === 0 ? [] : [`frame-src ${foreign.join(" ")}`]),
    `form-action ${[...new Set(["'self'", ...ends])].join(" ")}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** Returns the source of a policy that allows an address; null for a path. */
function sourceOf(address: string): string | null {
  const url = URL.parse(address);
  if (url === null) return null;
  return /^https?:$/.test(url.protocol) ? url.origin : url.protocol;
}

function documentOf(visitor: Visitor, { title, body, fault = null }: Extract<Answer, { body: Html }>): string {
  const { deps, language, visit } = visitor;
  const { texts, tag } = language;
  const { style, config } = deps;
  const asset = (file: string): string => visitor.path(`assets/${file}`);
  const { captcha } = deps.auth.config;
  const name = style.name();
  const notice = visit.notice;
  visit.notice = null;
  const brand = style.logo === null ? html`<span>${name}</span>` : html`<img src="${asset(style.logo)}" alt="${name}">`;
  const page = html`<!doctype html>
<html lang="${tag}" dir="${texts.dir ?? "ltr"}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title}${name === "" ? null : ` – ${name}`}</title>
<link rel="stylesheet" href="${asset(style.sheet)}">
<script type="module" src="${asset(style.script)}" data-base="${visitor.path("")}"></script>
${captcha === undefined ? null : html`<script src="${CAPTCHAS[captcha.provider].script}" async defer></script>`}
</head>
<body>
<main>
<header>${brand}</header>
<h1>${title}</h1>
${notice === null ? null : html`<p role="status">${notice}</p>`}
${fault === null ? null : alertOf(visitor, fault)}
${body}
<p role="alert" id="script-fault" hidden>${texts.passkeyFailed}</p>
</main>
<footer>${legal(texts, config)}</footer>
</body>
</html>
`;
  return page.text;
}

const alertOf = ({ language, deps }: Visitor, fault: Fault): Html =>
  html`<p role="alert" id="fault">${filled(language.texts[fault.text], { count: passwordMin(deps.auth.config) })}</p>`;

const PASSWORD_MIN_DEFAULT = 8;
export const passwordMin = ({ password }: { password?: { minLength?: number } }): number =>
  password?.minLength ?? PASSWORD_MIN_DEFAULT;

function legal(texts: PageTexts, { terms, privacy }: { terms?: string; privacy?: string }): Html {
  const link = (address: string | undefined, name: string) =>
    address === undefined ? null : html`<a href="${address}" rel="noopener">${name}</a> `;
  return html`${link(terms, texts.terms)}${link(privacy, texts.privacy)}`;
}

/** A field of a form, with its label. */
export interface Field {
  name: string;
  label: string;
  type?: "text" | "email" | "tel" | "password";
  autocomplete: string;
  value?: string;
  hint?: string;
  isOptional?: boolean;
  /** Digits are typed, as on a phone's keypad. */
  isNumeric?: boolean;
  minLength?: number;
  /** Whether the fault is about this field. */
  isWrong?: boolean;
}

export function fieldOf({
  name,
  label,
  type = "text",
  autocomplete,
  value = "",
  hint,
  isOptional = false,
  isNumeric = false,
  minLength,
  isWrong = false,
}: Field): Html {
  const hintId = `${name}-hint`;
  const describedBy = [...(hint === undefined ? [] : [hintId]), ...(isWrong ? ["fault"] : [])].join(" ");
  const attributes = [
    isOptional ? "" : "required",
    isNumeric ? 'inputmode="numeric"' : "",
    type === "email" || isNumeric ? 'autocapitalize="none" spellcheck="false"' : "",
    minLength === undefined ? "" : `minlength="${minLength}"`,
    describedBy === "" ? "" : `aria-describedby="${describedBy}"`,
    isWrong ? 'aria-invalid="true"' : "",
  ].filter((attribute) => attribute !== "");
  // Each of them is a constant, or a number.
  const more = new Html(attributes.join(" "));
  return html`<label for="${name}">${label}</label>
${hint === undefined ? null : html`<small id="${hintId}">${hint}</small>`}
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}" ${more}>`;
}

export const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

/** A form of the account page. */
export function actionForm(visitor: Visitor, action: string, content: Html): Html {
  return html`<form method="post" action="${visitor.path("account")}">${hidden("action", action)}${content}</form>`;
}

/** A section of the account page. */
export function section(id: string, title: string, content: Html): Html {
  return html`<section aria-labelledby="${id}-title" id="${id}"><h2 id="${id}-title">${title}</h2>${content}</section>`;
}

/** Result of a form, shown in its own answer, since codes and keys are shown once. */
export interface Shown {
  fault?: Fault;
  /** The section that the fault is about. */
  section?: string;
  /** A factor that has been begun. */
  enrolment?: JsonObject;
}

export type Handled = Answer | Shown;
/** Ends a form: with a notice, the sign-in that the answer asks for, or its fault in this section. */
export type Done = (answer: ApiAnswer, section: string, notice?: string) => Handled;
