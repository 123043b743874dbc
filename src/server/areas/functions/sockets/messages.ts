import { createHandleWSResponse, ElysiaWS } from "elysia/ws";
import { badRequest, tooLarge } from "../../../../kernel/errors.ts";
import { isTextWithinDepth, type JsonValue } from "../../../../kernel/json/json.ts";
import { jsonTextFault } from "../../../../kernel/json/text.ts";
import { JSON_DEPTH_MAX } from "../../../../kernel/limits.ts";
import { MESSAGE_VALUES_MAX } from "../limits.ts";
import type { SocketOptions } from "../requests/socket-options.ts";
import { numberOf, prototypeIn, refusePrototype } from "../values/text.ts";
import type { FunctionSocket } from "./function-socket.ts";

/** Parses a message for the handlers of a route: JSON is parsed, other texts stay texts. Errors: 400, 413. */
function parsed(text: string): unknown {
  if (text === "true" || text === "false" || text === "null") return JSON.parse(text);
  if (!/^["[{]/.test(text)) return numberOf(text) ?? text;
  if (!isTextWithinDepth(text)) throw badRequest(`The message nests deeper than ${JSON_DEPTH_MAX} levels`);
  if (isOver(text)) throw tooLarge(`A message must hold at most ${MESSAGE_VALUES_MAX} values`);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw badRequest(`${fault.path === "" ? "The message" : fault.path} ${fault.message}`);
  refusePrototype(prototypeIn(text, value));
  return value;
}

/** Whether a text may exceed the bound; counts commas within strings as well. */
function isOver(text: string): boolean {
  if (text.length <= MESSAGE_VALUES_MAX) return false;
  let count = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text[at];
    if (isInString && unit === "\\") at++;
    else if (unit === '"') isInString = !isInString;
    else if (!isInString && (unit === "," || unit === "[" || unit === "{")) count++;
  }
  return count > MESSAGE_VALUES_MAX;
}

/**
 * Passes a message to the route's handler, as Elysia does, whose own implementation parses without a depth bound and collects every
 * fault of a value into its error. `context`: that of the request.
 */
export async function receive(
  socket: FunctionSocket,
  message: string | Buffer,
  { options, context }: { options: SocketOptions; context: object },
): Promise<void> {
  // Elysia's types are those of Bun's own sockets, of which routes receive this part.
  const raw = socket as unknown as ConstructorParameters<typeof ElysiaWS>[0];
  const answer = createHandleWSResponse((context as { validator?: never }).validator);
  const reply = answer as unknown as (to: unknown, value: unknown) => unknown;
  try {
    let value: unknown = typeof message === "string" ? parsed(message) : message;
    for (const parse of [options.parse ?? []].flat()) {
      const own = await parse(raw, value);
      if (own === undefined) continue;
      value = own;
      break;
    }
    if (options.part !== null) value = await options.part.parse(value);
    await reply(raw, options.message?.(new ElysiaWS(raw, context as never, value as never), value));
  } catch (cause) {
    for (const handle of options.error ?? []) {
      const told = await handle(Object.assign(context, { error: cause }));
      await reply(raw, told);
      if (told) break;
    }
  }
}
