import { nameProblem } from "./names.ts";
import { KNOWN_PROVIDERS } from "./oauth-providers.ts";
import {
  boolean,
  type Check,
  duration,
  isPlainObject,
  list,
  members,
  named,
  secretText,
  text,
  textWith,
  url,
  whole,
} from "./shape.ts";

const PASSWORD_BYTES_MAX = 1024;
const PORT_MAX = 65_535;

const template = members({ subject: text, text, html: text }, ["subject", "text"]);

/** An absolute address, in which a trailing `*` stands for any rest. */
const redirectUrl = textWith((value) => {
  const parsed = URL.parse(value.replace(/\*$/, ""));
  if (parsed === null) return `must be an absolute URL, a * at its end for any rest, got "${value}"`;
  if (parsed.host.includes("*")) return "must have no * in its host: each host is named";
  // Without a path the * could make the host longer: https://app.example* would match https://app.example.evil.
  const isOpenHost = value.endsWith("*") && parsed.host !== "" && !/^[a-z][a-z0-9+.-]*:\/\/[^/?#]+[/?#]/i.test(value);
  return isOpenHost ? "must have a / between its host and the *, which would match other hosts" : null;
});

const provider = members(
  { clientId: text, clientSecret: secretText, issuer: url("https", "http"), scopes: list(text) },
  ["clientId", "clientSecret"],
);

const namedProviders = named(nameProblem, provider);

const oauth: Check = (value, report) => {
  let isRight = namedProviders(value, report);
  if (!isPlainObject(value)) return isRight;
  for (const [name, one] of Object.entries(value)) {
    const isKnown = KNOWN_PROVIDERS.some((known) => known === name);
    if (isKnown || !isPlainObject(one) || one["issuer"] !== undefined) continue;
    isRight = report
      .at(name)
      .at("issuer")
      .say(`is required: only ${KNOWN_PROVIDERS.join(", ")} are known by name`);
  }
  return isRight;
};

const passkeyOrigin = url("https", "http");

/** `auth`. Decisions 2 and 6. */
export const checkAuth = members({
  emailPassword: boolean,
  anonymous: boolean,
  magicLink: boolean,
  emailOtp: boolean,
  mfa: members({ totp: boolean }),
  session: members({
    accessTokenTtl: duration("seconds"),
    refreshTokenTtl: duration("seconds"),
    maxActive: whole({ min: 0 }),
  }),
  password: members({ minLength: whole({ min: 1, max: PASSWORD_BYTES_MAX, unit: "characters" }) }),
  oauth,
  passkeys: members({ rpName: text, rpId: text, origin: passkeyOrigin }, ["rpName", "rpId", "origin"]),
  redirectUrls: list(redirectUrl, { isEmptyAllowed: true }),
  mail: members({
    smtp: members(
      { host: text, port: whole({ min: 1, max: PORT_MAX }), user: text, pass: secretText, secure: boolean },
      ["host", "port"],
    ),
    from: text,
    templates: members({
      verification: template,
      passwordReset: template,
      magicLink: template,
      emailOtp: template,
      emailChange: template,
    }),
  }),
  captcha: members({ siteKey: text }, ["siteKey"]),
});
