import type { JsonValue } from "../../../kernel/json/json.ts";
import { ANY_INSTANCE, type LookupWatch, type RuleAddress } from "./lookups.ts";

/**
 * Creates a watch that generalizes a rule's lookups for one record to those for any record: to the records of the same table that
 * have the user's id in the same field, or, for a lookup without the user's id, to the whole table. Files other than `own` are
 * watched in all instances of their namespace.
 */
export function sightWatch(watch: LookupWatch, own: RuleAddress, userId: string | null): LookupWatch {
  return {
    lookedAt({ namespace, instanceId, table, fields, values }) {
      const isOwn = namespace === own.namespace && instanceId === own.instanceId;
      const place = { namespace, instanceId: instanceId === null || isOwn ? instanceId : ANY_INSTANCE, table };
      const at = userId === null ? -1 : values.indexOf(userId as JsonValue);
      const field = fields[at];
      if (field === undefined) watch.lookedAt({ ...place, fields: [], values: [] });
      else watch.lookedAt({ ...place, fields: [field], values: [userId] });
    },
  };
}
