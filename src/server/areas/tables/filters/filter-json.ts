import { badField } from "../../../../kernel/errors.ts";
import { isTextWithinDepth } from "../../../../kernel/json/json.ts";
import { JSON_DEPTH_MAX } from "../../../../kernel/limits.ts";

/** Parses the text of a query parameter into JSON; null for none. Errors: 400. */
export function filterJson(text: string | null | undefined, name: string): unknown {
  if (text === null || text === undefined || text === "") return null;
  if (!isTextWithinDepth(text)) {
    throw badField(name, "invalid_value", `${name} nests deeper than ${JSON_DEPTH_MAX} levels`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw badField(name, "invalid_value", `${name} is not valid JSON`);
  }
}
