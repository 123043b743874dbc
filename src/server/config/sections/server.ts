import { type Static, Type } from "typebox";
import { describe } from "../shape/report.ts";
import { list, refined, related, seconds, textWith, url, whole } from "../shape/schema.ts";
import { headerName, trustProxy } from "./network/proxies.ts";
import { type AcmeConfig, type CertificateFiles, Tls } from "./network/tls.ts";

const publicUrl = refined(url("https", "http"), (value, report) => {
  const { search, hash, username, password } = new URL(value);
  const isPlain = [search, hash, username, password].every((part) => part === "");
  if (!isPlain) report.say("must not have a query, a fragment or credentials");
});

/** Each worker has a place in the page that the processes share. */
const WORKERS_MAX = 16;

const ServerMembers = Type.Object({
  /** The base address of links in mail and of signed URLs. */
  publicUrl: Type.Optional(publicUrl),
  /**
   * The trusted proxies in front of the server, for the client's address. A number: how many there are; true: 1. A list: their
   * addresses and ranges. false by default: the address is that of the connection.
   */
  trustProxy: Type.Optional(trustProxy),
  /** The header in which a trusted proxy sends the client's address, such as `CF-Connecting-IP`. `X-Forwarded-For` by default. */
  clientAddressHeader: Type.Optional(headerName()),
  /** HTTPS, with certificates that the server obtains itself or that are in files. None by default. */
  tls: Type.Optional(Type.Unsafe<AcmeConfig | CertificateFiles>(Tls)),
  /** The seconds of `Strict-Transport-Security`, sent with every answer; true: a year. false by default. */
  hsts: Type.Optional(Type.Union([Type.Boolean(), seconds()])),
  /** true: logs a line for every request. false by default. */
  accessLog: Type.Optional(Type.Boolean()),
  /**
   * Processes beside the main one that answer reads of tables, downloads and pages on further cores. "auto" by default: they start while the server is busy,
   * up to its cores less one, at most 7. A number: so many from the start; 0: none, as by default with `tls`.
   */
  workers: Type.Optional(Type.Union([Type.Literal("auto"), whole({ min: 0, max: WORKERS_MAX })])),
  /** Bytes of a JSON body; 10 MiB by default. */
  maxBodySize: Type.Optional(whole({ min: 1, unit: "bytes" })),
});

export const Server = related(ServerMembers, (server, report) => {
  if (server["clientAddressHeader"] === undefined) return;
  if (server["trustProxy"] !== undefined && server["trustProxy"] !== false) return;
  report.at("clientAddressHeader").say("needs trustProxy, as anybody can send a header");
});

const origin = () =>
  textWith((value) => {
    if (value === "*" || URL.parse(value)?.origin === value) return null;
    return `must be * or an origin such as https://app.example.com, got ${describe(value)}`;
  });

export const Cors = Type.Object({
  /** The allowed origins; `"*"` by default. */
  origin: Type.Optional(Type.Union([origin(), list(origin())])),
  credentials: Type.Optional(Type.Boolean()),
  /** Seconds; 600 by default. */
  maxAge: Type.Optional(seconds({ min: 0 })),
});

export const Analytics = Type.Object({
  /** Whether requests are recorded; true by default. */
  requestLog: Type.Optional(Type.Boolean()),
  /** The duration in milliseconds from which requests are recorded whole, for 7 days; 500 by default. */
  slowMs: Type.Optional(whole({ min: 1, unit: "milliseconds" })),
});

export const Audit = Type.Object({
  /** The days for which entries are kept; 365 by default. */
  days: Type.Optional(whole({ min: 1, max: 36_500, unit: "days" })),
});

export const Api = Type.Object({
  /** Whether the schema endpoint serves; false by default: 404. */
  schemaEndpoint: Type.Optional(Type.Union([Type.Boolean(), Type.Literal("authenticated")])),
  /** Whether `/swagger` is served; true by default. */
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
  /** The limit of every request. */
  global: limit(),
  auth: limit(),
  signin: limit(),
  signup: limit(),
  events: limit(),
  /** Texts to phones. */
  phone: limit(),
  /** Messages of agents at `/mcp`, for each caller. */
  mcp: limit(),
  /** Searches by meaning (`mode=hybrid`), for each user, and for each network of anonymous callers. */
  embeddings: limit(),
});
export type RateLimitGroup = keyof Static<typeof RateLimits>;
