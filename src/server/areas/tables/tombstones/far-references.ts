import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "../records/namespaces.ts";
import type { RecordRights } from "../rules/access.ts";
import { Behind } from "../rules/decisions.ts";
import { type CheckFar, countIds, createVisibility, idsIn, unknown } from "../write/references.ts";
import { referringOf } from "../write/referring.ts";
import { noteReferred, placeIn } from "./follower.ts";
import type { Followers } from "./followers.ts";
import { mustWait } from "./machine.ts";

/**
 * Returns the check of a reference to a table of another namespace, by the last commit of its file. Errors: as `References.check`;
 * `Behind` where a deletion of before has to be carried out first. [TB911]
 */
export function createFarReferences(deps: {
  followers: Followers;
  tableOf(model: TableModel): Table;
  rights: RecordRights;
}): CheckFar {
  const { followers, tableOf, rights } = deps;
  const visibility = createVisibility(rights);
  return (context, { model }, edge, change) => {
    const { column, to } = edge;
    const idsOf = (value: JsonValue | undefined): string[] => {
      if (column.links !== null) return idsIn(value);
      return value === undefined || value === null ? [] : [String(value)];
    };
    const { name } = column;
    const [before, after] = [new Set(idsOf(change.stored?.[name])), new Set(idsOf(change.next[name]))];
    const added = [...after.difference(before)];
    if (column.links !== null) countIds(context, added.length + before.difference(after).size);
    if (added.length === 0) return;
    const following = followers.following(model.namespace, to.namespace);
    if (following === null) throw new Error(`${model.namespace} does not follow ${to.namespace}`);
    const { target, to: namespace } = following;
    if (mustWait(target, placeIn(context.tx, following), { table: to.name, ids: added })) {
      throw new Behind(followers.caughtUp(context.rules.about));
    }
    const table = tableOf(to);
    const asked = new Set(change.asked[name] === column.field?.default ? [] : idsOf(change.asked[name]));
    const check = (ids: readonly string[], isOwnWord: boolean): void => {
      if (ids.length === 0) return;
      const isShown = isOwnWord && !edge.mayBeHidden;
      const condition = isShown ? visibility(context, table, context.rules.at(to.namespace)) : null;
      const [missing] = referringOf(table).missing(namespace.file, ids, condition);
      if (missing !== undefined) throw unknown(edge, isOwnWord ? missing : null);
    };
    check(
      added.filter((id) => asked.has(id)),
      true,
    );
    check(
      added.filter((id) => !asked.has(id)),
      false,
    );
    noteReferred(context.tx, following, table, added);
  };
}
