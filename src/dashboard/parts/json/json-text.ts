import { describeFault } from "../../../kernel/json/json.ts";
import { jsonTextFault } from "../../../kernel/json/text.ts";

/** A value that was typed as JSON. Errors: `Error` that says what is wrong with `name`, numbers that would become others included. */
export function parseJson(text: string, name = "This"): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is no JSON`);
  }
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw new Error(describeFault(name, fault));
  return value;
}
