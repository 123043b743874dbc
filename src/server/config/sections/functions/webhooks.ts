import { type Static, Type } from "typebox";
import { WEBHOOK_SECRET_MAX_BYTES, WEBHOOK_SECRET_MIN_BYTES } from "../../limits.ts";
import { nameProblem } from "../../shape/names.ts";
import { named, refined, secretText, url } from "../../shape/schema.ts";
import { eventSource, sourceFilter } from "./sources.ts";

const SECRET_PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** A secret in the format of Standard Webhooks libraries. */
const secret = () =>
  refined(secretText(), (value, report) => {
    const encoded = value.startsWith(SECRET_PREFIX) ? value.slice(SECRET_PREFIX.length) : value;
    const bytes = BASE64.test(encoded) ? Buffer.from(encoded, "base64").length : 0;
    if (bytes >= WEBHOOK_SECRET_MIN_BYTES && bytes <= WEBHOOK_SECRET_MAX_BYTES) return;
    report.say(
      `must be ${WEBHOOK_SECRET_MIN_BYTES} to ${WEBHOOK_SECRET_MAX_BYTES} random bytes as base64, with or without ${SECRET_PREFIX} before ` +
        "them; openssl rand -base64 32 makes such a secret",
    );
  });

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const OWN_HEADERS: readonly string[] = ["content-type", "content-length", "host", "connection", "transfer-encoding"];

function headerNameProblem(name: string): string | null {
  if (!HEADER_NAME.test(name)) return "is not the name of a header";
  const lower = name.toLowerCase();
  return lower.startsWith("webhook-") || OWN_HEADERS.includes(lower) ? "is set by the server" : null;
}

/** A header's value, kept secret: it may be a credential. */
const headerValue = () =>
  refined(secretText(), (value, report) => {
    if (!/^[\t\x20-\x7e]*$/.test(value)) report.say("must consist of visible ASCII characters and spaces");
  });

const WebhookShape = Type.Object({
  /** The target: any address, including those of the own network. */
  url: url("https", "http"),
  secret: secret(),
  on: eventSource(),
  /** A filter on `after`, for deletes on `before`. Default: every change. */
  filter: Type.Optional(sourceFilter()),
  /** Headers sent with each delivery. */
  headers: Type.Optional(named(headerValue(), headerNameProblem)),
});
export interface WebhookConfig extends Static<typeof WebhookShape> {}

export const Webhooks = named(Type.Unsafe<WebhookConfig>(WebhookShape), nameProblem);
