import { type TSchema, Type } from "typebox";
import { projection } from "../../../kernel/schema/projection.ts";
import { AnyObject } from "../../../kernel/schema/types.ts";
import type { Accounts } from "../../access/accounts.ts";
import { actorOf } from "../../access/principal.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { SignInMeans } from "../../config/shapes/sign-in.ts";
import { OwnUser, User } from "../../config/shapes/users.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { ownOrigin } from "../../http/exchange/own-origin.ts";
import type { Exports } from "./export.ts";
import { adminUser, requireAccount } from "./service.ts";

const ownUser = projection(OwnUser);

const File = Type.Object({
  bucket: Type.String(),
  key: Type.String(),
  size: Type.Integer(),
  contentType: Type.String(),
  uploaded: Type.String({ format: "date-time" }),
  url: Type.String({ description: "Good for an hour, with the rights of who has exported" }),
});

const exportOf = (account: TSchema) =>
  Type.Object(
    {
      exportedAt: Type.String({ format: "date-time" }),
      account,
      ...SignInMeans.properties,
      records: Type.Record(Type.String(), Type.Array(AnyObject), {
        description: "By namespace/table, or namespace/instance/table",
      }),
      files: Type.Array(File),
    },
    { description: "All that is known of the user, as a file" },
  );

/** Everything about a user as one file, for the user and for administrators. */
export function exportEndpoints(deps: {
  accounts: Accounts;
  exports: Exports;
  limit: (network: string) => void;
}): readonly Endpoint[] {
  const { accounts, exports, limit } = deps;
  const own = endpoint(
    "GET /api/auth/me/export",
    {
      tag: "Auth",
      place: "core",
      refusesScopedKeys: true,
      limit,
      caller: "user",
      summary: "Export your data as a file, after a sign-in of the last 10 minutes",
      description:
        "Your account, sessions and ways to sign in, records that refer to you by a reference to the table of users, and files that you have uploaded, as far as you may read them. Records are read one after another, and not at one moment.",
      answers: { 200: exportOf(OwnUser) },
      errors: [503],
    },
    async ({ principal, query, request }) => {
      query();
      const userId = principal.auth.id;
      accounts.requireRecentSignIn(principal);
      const account = ownUser(requireAccount(accounts, userId));
      const asked = { principal, userId, account, means: accounts.means(userId), origin: ownOrigin(request) };
      return exports.answer(asked, () => accounts.noteExport(userId, null));
    },
  );
  const ofUser = endpoint(
    "GET /api/auth/admin/users/:id/export",
    {
      tag: "Administration",
      caller: "serviceKey",
      place: "core",
      limit,
      summary: "Export a user's data as a file",
      description:
        "The account with sessions and ways to sign in, records that refer to the user by a reference to the table of users, and files that the user has uploaded: what the key's `db` and `storage` scopes let it read.",
      path: { id: "The user's id" },
      answers: { 200: exportOf(User) },
      errors: [404, 503],
    },
    async ({ principal, params, query, request }) => {
      requireServiceKey(principal, ["auth", "admin", "*", "read"]);
      query();
      const { id: userId } = params;
      const account = adminUser(requireAccount(accounts, userId));
      const asked = { principal, userId, account, means: accounts.means(userId), origin: ownOrigin(request) };
      return exports.answer(asked, () => accounts.noteExport(userId, actorOf(principal)));
    },
  );
  return [own, ofUser];
}
