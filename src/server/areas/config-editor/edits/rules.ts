import { addMember, memberOf, objectOf, type Splice, setMember } from "../syntax/objects.ts";
import { endOf, startOf } from "../syntax/source.ts";
import type { EditOf } from "./edit.ts";
import { type Edited, type Editing, type TablePlace, tableOf } from "./place.ts";
import { givenRule } from "./rule-source.ts";
import { templateRule } from "./templates.ts";

/** Sets a rule of a table by a template or by its text. */
export function setRule(editing: Editing<EditOf<"setRule">>): Edited {
  const { source, edit, fault } = editing;
  const place = tableOf(editing);
  if ((edit.template === undefined) === (edit.source === undefined)) {
    throw fault("template", "invalid_value", "A rule needs a template or a source, and not both");
  }
  const rule = edit.template === undefined ? givenRule(editing, place) : templateRule(editing, place);
  const problems = rule.problems.map((message) => ({ path: `${place.path}.access.${edit.rule}`, message }));
  return { splices: [...rule.splices, ...written({ source, place, name: edit.rule, text: rule.text })], problems };
}

function written({
  source,
  place,
  name,
  text,
}: {
  source: Editing["source"];
  place: TablePlace;
  name: string;
  text: string;
}): Splice[] {
  const path = `${place.path}.access`;
  const print = (): string => text;
  const access = objectOf(place.object, "access", place.path);
  if (access === null) {
    return addMember(source, place.object, "access", (indent) => `{\n${indent}  ${name}: ${text},\n${indent}}`);
  }
  const method = access.properties.find(
    (one) => one.type === "ObjectMethod" && one.key.type === "Identifier" && one.key.name === name,
  );
  if (method !== undefined) return [{ start: startOf(method), end: endOf(method), text: `${name}: ${text}` }];
  // A variable as the rule is replaced by the rule, and stays declared.
  const property = memberOf(access, name, path);
  if (property?.shorthand === true)
    return [{ start: startOf(property), end: endOf(property), text: `${name}: ${text}` }];
  return setMember(source, access, { name, path, print });
}
