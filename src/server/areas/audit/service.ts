import { type Static, type TObject, Type } from "typebox";
import { decodeCursor, encodeCursor } from "../../../kernel/records/page-cursor.ts";
import { momentOf } from "../../../kernel/time/iso-datetime.ts";
import type { ReadCaller } from "../../db/index.ts";
import { FILTER_LENGTH_MAX, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from "./limits.ts";
import type { AuditPlace, AuditStore, ShownEntry } from "./store.ts";

const filter = (description: string) => Type.Optional(Type.String({ maxLength: FILTER_LENGTH_MAX, description }));

export const AUDIT_QUERY = {
  actor: filter("The name or kind of who did it, or whom they acted as"),
  action: filter("An action, or the beginning of some: `record` for `record.insert` and others"),
  target: filter("What was changed, or the beginning of its path: `db/shared/notes`"),
  after: filter("The first moment, in milliseconds since 1970 or ISO 8601"),
  request: filter("The id of the request that did it"),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT })),
  cursor: filter("The `cursor` of the previous page"),
};

type AuditParameters = Static<TObject<typeof AUDIT_QUERY>>;

export interface AuditService {
  /** Lists entries, newest first, including every change that was answered before. Errors: 400, 408, 503. */
  list(parameters: AuditParameters, caller: ReadCaller): Promise<{ entries: ShownEntry[]; cursor: string | null }>;
}

/** Creates the service. `store` returns null while there is no log yet. */
export function createAuditService(deps: { store: () => AuditStore | null; flush: () => Promise<void> }): AuditService {
  return {
    async list(
      { actor = null, action = null, target = null, request = null, after, limit = PAGE_LIMIT_DEFAULT, cursor },
      caller,
    ) {
      const from = after === undefined ? null : momentOf("after", after);
      const before = cursor === undefined ? null : auditPlace(cursor);
      await deps.flush();
      const store = deps.store();
      if (store === null) return { entries: [], cursor: null };
      const query = { actor, action, target, request, after: from, before, limit };
      const { entries, next } = await store.page(query, caller);
      return { entries, cursor: next === null ? null : encodeCursor(next.batch, next.index) };
    },
  };
}

function auditPlace(cursor: string): AuditPlace {
  const [batch, index] = decodeCursor(cursor, 2);
  return { batch, index };
}
