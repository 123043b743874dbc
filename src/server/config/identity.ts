import type { JsonObject } from "../../kernel/json/json.ts";

/** The caller, as access rules see it; null without a token. */
export interface Auth {
  id: string;
  /** The address as the user entered it. `emailVerified` says whether its ownership is proved. */
  email: string | null;
  /** Whether the user has proved that the address is theirs. A rule that trusts `email` must check it. */
  emailVerified: boolean;
  /** The verified number in E.164, such as `+4366012345678`; null without one. */
  phone: string | null;
  /** The user's current role, not the token's. */
  role: string;
  isAnonymous: boolean;
  /** The custom claims of the token. */
  custom: JsonObject;
  /** The invitation whose acceptance began this session, if it was given `data`; null otherwise. */
  invitation: { data: JsonObject } | null;
}
