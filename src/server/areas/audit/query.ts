import { type Static, type TObject, Type } from "typebox";
import { FILTER_LENGTH_MAX, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from "./limits.ts";

const filter = (description: string) => Type.Optional(Type.String({ maxLength: FILTER_LENGTH_MAX, description }));

export const AUDIT_QUERY = {
  actor: filter("The name or kind of who did it, or whom they acted as"),
  action: filter("An action, or the beginning of some: `record` for `record.insert` and others"),
  target: filter("What was changed, or the beginning of its path: `db/shared/notes`"),
  after: filter("The first moment, in milliseconds since 1970 or ISO 8601"),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT })),
  cursor: filter("The `cursor` of the previous page"),
};

export type AuditParameters = Static<TObject<typeof AUDIT_QUERY>>;
