import { type Static, type TSchema, Type } from "typebox";
import { endOfString, type JsonObject, type JsonValue } from "../../kernel/json.ts";
import { createParser, type Parser } from "../../kernel/schema/parser.ts";

// What clients send. `ping` is not among them: it may carry anything, and is answered before its form is looked at.

/** Any message may carry one; an error that answers it repeats it where it is a string. */
const RequestId = Type.Optional(Type.Unknown());
/** What the client knows of a state. The `sync` that answers holds all of it anyway. */
const Hint = Type.Optional(Type.Unknown());

/** JSON text has no other values. */
const Json = Type.Unsafe<JsonValue>(Type.Unknown());

const Auth = Type.Object({ type: Type.Literal("auth"), token: Type.String(), requestId: RequestId });
const Join = Type.Object({
  type: Type.Literal("join"),
  lastSharedState: Hint,
  lastSharedVersion: Hint,
  lastPlayerState: Hint,
  lastPlayerVersion: Hint,
  requestId: RequestId,
});
const Send = Type.Object({
  type: Type.Literal("send"),
  actionType: Type.String({ minLength: 1 }),
  payload: Type.Optional(Json),
  requestId: Type.String(),
});

export type ActionMessage = Static<typeof Send>;
type ClientMessage = Static<typeof Auth> | Static<typeof Join> | ActionMessage;

/** What is wrong with a message. */
export interface MessageFault {
  /** `unknown`: its type, or a member, is not declared. `malformed`: a member that its type declares is wrong or missing. */
  kind: "unknown" | "malformed";
  type: ClientMessage["type"] | null;
  message: string;
}

/** Characters of a name that an error repeats. */
const NAME_SHOWN_LENGTH = 64;

const PARSERS = new Map<JsonValue | undefined, { type: ClientMessage["type"]; parser: Parser<TSchema> }>([
  ["auth", { type: "auth", parser: createParser(Auth) }],
  ["join", { type: "join", parser: createParser(Join) }],
  ["send", { type: "send", parser: createParser(Send) }],
]);

/** The message, when it holds to the declaration of its type; else what is wrong with it. */
export function parseClientMessage(message: JsonObject): ClientMessage | MessageFault {
  const declared = PARSERS.get(message["type"]);
  if (declared === undefined) {
    return { kind: "unknown", type: null, message: "type must be auth, join, send or ping" };
  }
  const { type, parser } = declared;
  const problems = parser.problemsOf(message);
  // The parser of its type has accepted it.
  if (problems === null) return message as unknown as ClientMessage;
  const unknown = Object.keys(problems).find((name) => problems[name]?.code === "unknown_field");
  if (unknown !== undefined) {
    const name = unknown.slice(0, NAME_SHOWN_LENGTH);
    return { kind: "unknown", type, message: `There is no member "${name}" in "${type}"` };
  }
  const [problem] = Object.values(problems);
  return { kind: "malformed", type, message: problem?.message ?? "The message is malformed" };
}

/**
 * Values in a JSON text (commas and opening brackets outside strings). Counted before a long text is parsed: each of them
 * is looked at once more when it becomes part of a state.
 */
export function countValues(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA || unit === OPENING_BRACKET || unit === OPENING_BRACE) count++;
  }
  return count;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;
