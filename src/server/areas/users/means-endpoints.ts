import { Type } from "typebox";
import type { RemovableMeans } from "../../access/accounts.ts";
import { actorOf } from "../../access/principal.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { OK } from "../../http/reply.ts";
import { SignInMeans } from "./schemas.ts";
import type { UsersService } from "./service.ts";

const REMOVALS: readonly { kind: RemovableMeans; path: string; summary: string }[] = [
  { kind: "session", path: "sessions", summary: "End a session of a user" },
  { kind: "identity", path: "identities", summary: "Remove an OAuth identity of a user" },
  { kind: "passkey", path: "passkeys", summary: "Remove a passkey of a user" },
];

/** What a user is signed in with, and can sign in with. */
export function meansEndpoints({
  users,
  limit,
}: {
  users: UsersService;
  limit: (network: string) => void;
}): readonly Endpoint[] {
  const tag = "Administration";
  const read = endpoint(
    "GET /api/auth/admin/users/:id/means",
    {
      tag,
      limit,
      caller: "serviceKey",
      summary: "List a user's sessions, second factors, OAuth identities and passkeys",
      path: { id: "The user's id" },
      answers: { 200: SignInMeans },
      errors: [404],
    },
    ({ principal, params, query }) => {
      requireServiceKey(principal, ["auth", "admin", "*", "read"]);
      query();
      return users.means(params.id);
    },
  );
  const removals = REMOVALS.map(({ kind, path, summary }) =>
    endpoint(
      `DELETE /api/auth/admin/users/:id/${path}/:means`,
      {
        tag,
        limit,
        caller: "serviceKey",
        summary,
        description: "Also the last way to sign in.",
        path: { id: "The user's id", means: "The id, as listed" },
        answers: { 200: Type.Object({ ok: Type.Literal(true) }, { description: "Done" }) },
        errors: [404],
      },
      async ({ principal, params, query }) => {
        requireServiceKey(principal, ["auth", "admin", "*", "write"]);
        query();
        await users.removeMeans(params.id, { kind, id: params.means }, actorOf(principal));
        return OK;
      },
    ),
  );
  return [read, ...removals];
}
