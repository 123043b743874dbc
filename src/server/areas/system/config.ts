import { type Static, Type } from "typebox";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { AnyObject, nullable } from "../../../kernel/schema/types.ts";
import { VERSION } from "../../../kernel/version.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { PAGES_PATH } from "../../config/sections/auth-pages.ts";
import type { PlatformConfig } from "../../config/types.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { JsonText } from "../../http/reply.ts";

const Flag = Type.Boolean();

/** Schema of the configuration that clients may see before sign-in. It contains no secret. [SY2] */
export const PublicConfig = Type.Object(
  {
    auth: Type.Object({
      emailPassword: Flag,
      anonymous: Flag,
      magicLink: Flag,
      emailOtp: Flag,
      phone: Flag,
      mfa: Flag,
      mfaPhone: Flag,
      oauth: Type.Array(Type.String(), { description: "Names of the providers" }),
      passkeys: Flag,
      pages: nullable(Type.String({ description: "The path of the pages for signing in" })),
    }),
    captcha: nullable(Type.Object({ siteKey: Type.String() })),
    push: nullable(
      Type.Object({ publicKey: Type.String({ description: "The VAPID key with which browsers subscribe" }) }),
    ),
    version: Type.String(),
  },
  { description: "The enabled sign-in methods, the CAPTCHA site key and the public key of Web Push" },
);
export type PublicConfig = Static<typeof PublicConfig>;

/** Returns the public configuration. Every member is copied by name, so that a new member of the config stays private. */
export function describePublicConfig({ auth = {}, push }: PlatformConfig): PublicConfig {
  return {
    auth: {
      emailPassword: auth.emailPassword !== false,
      anonymous: auth.anonymous === true,
      magicLink: auth.magicLink === true,
      emailOtp: auth.emailOtp === true,
      phone: auth.phones !== undefined && auth.phones.signIn !== false,
      mfa: auth.mfa?.totp === true,
      mfaPhone: auth.mfa?.phone === true,
      oauth: Object.keys(auth.oauth ?? {}),
      passkeys: auth.passkeys !== undefined,
      pages: auth.pages === undefined ? null : (auth.pages.path ?? PAGES_PATH),
    },
    captcha: auth.captcha === undefined ? null : { siteKey: auth.captcha.siteKey },
    push: push?.webPush === undefined ? null : { publicKey: push.webPush.publicKey },
    version: VERSION,
  };
}

/** Members whose texts are no secrets. Every other text is hidden, so that a secret of a new option is hidden too. */
const SHOWN = new Set([
  ...["schedule", "timezone", "type", "metric", "provider", "publicUrl", "defaultLanguage"],
  ...["references", "table", "column", "onDelete", "onUpdate", "fields", "fts", "events", "actions", "bucket", "auth"],
  ...["scopes", "expiresAt", "origin", "methods", "trustProxy", "redirectUrls", "domains", "enum", "folder"],
]);
const HIDDEN = "[hidden]";

/** Returns numbers, switches and names as they are; functions and texts that may be secrets are named only. */
function shown(value: unknown, member: string): JsonValue {
  if (typeof value === "number" || typeof value === "boolean" || value === null) return value;
  if (typeof value === "string") return SHOWN.has(member) ? value : HIDDEN;
  if (typeof value === "function") return "[function]";
  if (Array.isArray(value)) return value.map((entry) => shown(entry, member));
  if (typeof value !== "object") return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Schemas of routes and jobs, regular expressions and instances are code.
  if (prototype !== null && prototype !== Object.prototype) return "[object]";
  return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, shown(own, name)]));
}

export function configEndpoint(config: PlatformConfig): Endpoint {
  let text: string | null = null;
  return endpoint(
    "GET /api/admin/config",
    {
      tag: "Administration",
      summary: "Get the config as it runs",
      description:
        "Numbers, switches and names; `[hidden]` in place of texts that may be secrets, `[function]` of code.",
      caller: "serviceKey",
      place: "none",
      answers: { 200: AnyObject },
    },
    ({ principal, query }) => {
      requireServiceKey(principal, ["system", "*", "*", "read"]);
      query();
      text ??= JSON.stringify(shown(config, ""));
      return new JsonText(text);
    },
  );
}
