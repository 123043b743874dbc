import { useState } from "react";
import { isJsonObject, type JsonObject } from "../../../kernel/json/json.ts";
import { messageOf } from "../../api/failure.ts";
import { parseJson } from "./json-text.ts";

/**
 * An object that is edited as JSON. What was typed stays while what is stored changes, and saving writes the members that were
 * edited: somebody else may have changed the others since they were loaded.
 */
export function useObjectDraft(stored: JsonObject) {
  /** What was typed, and the object that it began as; null: nothing. */
  const [draft, setDraft] = useState<{ text: string; of: JsonObject } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const text = draft?.text ?? JSON.stringify(stored, null, 2);
  return {
    text,
    problem,
    isEdited: draft !== null,
    edit: (next: string): void => setDraft({ text: next, of: draft?.of ?? stored }),
    drop(): void {
      setDraft(null);
      setProblem(null);
    },
    /** What was typed; null, and a problem, where it is no object. */
    read(): JsonObject | null {
      const value = objectOf(text);
      setProblem(typeof value === "string" ? value : null);
      return typeof value === "string" ? null : value;
    },
    /** `present` with what was edited. */
    appliedTo(present: JsonObject, edited: JsonObject): JsonObject {
      const before = draft?.of ?? stored;
      const isEdited = ([name]: readonly [string, unknown]): boolean =>
        JSON.stringify(before[name]) !== JSON.stringify(edited[name]);
      const others = Object.entries(present).filter((member) => !isEdited(member));
      return Object.fromEntries([...others, ...Object.entries(edited).filter(isEdited)]);
    },
    /** Forgets what was typed up to the call that has saved it. */
    saved: (): void => setDraft((now) => (now === draft ? null : now)),
  };
}

/** What was typed, or what is wrong with it. */
function objectOf(text: string): JsonObject | string {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : "This is no JSON object";
  } catch (error) {
    return messageOf(error);
  }
}
