import { type Static, Type } from "typebox";
import { describe } from "../shape/report.ts";
import { list, refined, seconds, textWith, url, whole } from "../shape/schema.ts";

const publicUrl = refined(url("https", "http"), (value, report) => {
  const { search, hash, username, password } = new URL(value);
  const isPlain = [search, hash, username, password].every((part) => part === "");
  if (!isPlain) report.say("must not have a query, a fragment or credentials");
});

export const Server = Type.Object({
  /** The address that links in mail and signed URLs begin with. */
  publicUrl: Type.Optional(publicUrl),
  /** true: the client's address is taken from `X-Forwarded-For`. false by default. */
  trustProxy: Type.Optional(Type.Boolean()),
  /** Bytes of a JSON body; 10 MiB by default. */
  maxBodySize: Type.Optional(whole({ min: 1, unit: "bytes" })),
});

const origin = () =>
  textWith((value) => {
    if (value === "*" || URL.parse(value)?.origin === value) return null;
    return `must be * or an origin such as https://app.example.com, got ${describe(value)}`;
  });

export const Cors = Type.Object({
  /** `"*"` by default. */
  origin: Type.Optional(Type.Union([origin(), list(origin())])),
  credentials: Type.Optional(Type.Boolean()),
  /** Seconds; 600 by default. */
  maxAge: Type.Optional(seconds({ min: 0 })),
});

export const Analytics = Type.Object({
  /** true by default. */
  requestLog: Type.Optional(Type.Boolean()),
});

export const Api = Type.Object({
  /** false by default: 404. */
  schemaEndpoint: Type.Optional(Type.Union([Type.Boolean(), Type.Literal("authenticated")])),
  /** `/swagger`; true by default. */
  docs: Type.Optional(Type.Boolean()),
});

const Limit = Type.Object({
  requests: whole({ min: 1 }),
  /** Seconds. */
  window: seconds(),
});
export interface RateLimit extends Static<typeof Limit> {}

const limit = () => Type.Optional(Type.Unsafe<RateLimit>(Limit));

export const RateLimits = Type.Object({
  /** Every request. */
  global: limit(),
  auth: limit(),
  signin: limit(),
  signup: limit(),
  events: limit(),
});
export type RateLimitGroup = keyof Static<typeof RateLimits>;
