import { Type } from "typebox";
import { operation } from "../http/operation.ts";

const tag = "System";
const Text = Type.String();
const Flag = Type.Boolean();

const Field = Type.Object({
  type: Type.Enum(["string", "text", "number", "integer", "boolean", "datetime", "json"]),
  required: Type.Boolean({ description: "An insert has to give it, unless it has a default" }),
  unique: Flag,
  generated: Type.Boolean({ description: "The server fills it where an insert gives none" }),
  default: Type.Optional(Type.Unknown()),
  min: Type.Optional(Type.Number({ description: "Characters of text, value of numbers" })),
  max: Type.Optional(Type.Number()),
  pattern: Type.Optional(Type.String({ description: "The source of a regular expression" })),
  patternFlags: Type.Optional(Text),
  enum: Type.Optional(Type.Array(Type.Union([Text, Type.Number()]))),
  references: Type.Optional(Type.Object({ table: Text, column: Text, onDelete: Text })),
  check: Type.Optional(Type.String({ description: "An SQL expression" })),
  onUpdate: Type.Optional(Type.Literal("now")),
});

const Table = Type.Object({
  schemaless: Type.Boolean({ description: "Records carry any further fields" }),
  fields: Type.Record(Text, Field),
  fts: Type.Union([Type.Object({ fields: Type.Array(Text), tokenize: Text }), Type.Null()]),
  indexes: Type.Array(Type.Object({ fields: Type.Array(Text), unique: Flag })),
});

export const DESCRIPTIONS = {
  health: operation({
    ...{ tag, summary: "Whether the server answers", security: "open" },
    answers: {
      200: {
        description: "It does; `uptime` in seconds; `drill` where it was started with --drill",
        schema: Type.Object({
          status: Type.Literal("ok"),
          version: Text,
          uptime: Type.Integer(),
          drill: Type.Optional(Type.Literal(true)),
        }),
      },
    },
    errors: [],
  }),
  config: operation({
    ...{ tag, summary: "What a client may know before anybody has signed in", security: "open" },
    answers: {
      200: {
        description: "The ways to sign in, and the CAPTCHA site key",
        schema: Type.Object({
          auth: Type.Object({
            ...{ emailPassword: Flag, anonymous: Flag, magicLink: Flag, emailOtp: Flag, mfa: Flag, passkeys: Flag },
            oauth: Type.Array(Text, { description: "The names of the providers" }),
          }),
          captcha: Type.Union([Type.Object({ siteKey: Text }), Type.Null()]),
          version: Text,
        }),
      },
    },
    errors: [],
  }),
  schema: operation({
    ...{ tag, summary: "The declared tables, their fields and constraints", security: "rules" },
    description:
      "`api.schemaEndpoint` decides: false (404), true (public) or `authenticated` (a token or a service key).",
    answers: {
      200: {
        description: "By namespace and table; never rules, hooks or migrations",
        schema: Type.Object({
          namespaces: Type.Record(Text, Type.Object({ instance: Flag, tables: Type.Record(Text, Table) })),
        }),
      },
    },
    errors: [401, 403, 404],
  }),
  metrics: operation({
    ...{ tag, summary: "Figures for Prometheus", security: "serviceKey" },
    description: "Requests, latency, files, queues, sockets, rooms, memory; text format 0.0.4.",
    answers: { 200: { description: "One line a figure", schema: Text, contentType: "text/plain" } },
    errors: [401, 403],
  }),
};
