import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { javascript } from "@codemirror/lang-javascript";
import { useMemo } from "react";
import type { TableSchema } from "../../../api/resources.ts";
import { CodeEditor } from "../../../parts/code/code-editor.tsx";

const OF_AUTH = ["id", "email", "emailVerified", "phone", "role", "isAnonymous", "custom", "invitation"];

/** Editor of a rule's function, with completion of what `auth` and the records have. */
export default function RuleEditor({
  label,
  fields,
  value,
  onChange,
}: {
  /** Accessible name. */
  label: string;
  fields: TableSchema["fields"];
  value: string;
  onChange(value: string): void;
}) {
  const extensions = useMemo(() => {
    const names = Object.keys(fields);
    return [javascript({ typescript: true }), autocompletion({ override: [(context) => members(context, names)] })];
  }, [fields]);
  return <CodeEditor label={label} value={value} onChange={onChange} extensions={extensions} />;
}

/** Completes members of `auth`, and those of records after any other name. */
function members(context: CompletionContext, fields: readonly string[]): CompletionResult | null {
  const found = context.matchBefore(/\w+\??\.\w*/);
  if (found === null) return null;
  const dot = found.text.indexOf(".");
  const isAuth = found.text.startsWith("auth");
  const options = (isAuth ? OF_AUTH : fields).map((label) => ({ label, type: "property" }));
  return { from: found.from + dot + 1, options };
}
