import { Type } from "typebox";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { optional } from "../../../kernel/schema/types.ts";
import { nextTurn } from "../../../kernel/time/next-turn.ts";
import {
  DisplayName,
  Email,
  emailOf,
  Metadata,
  newPassword,
  Role,
  requireMetadataSize,
} from "../../config/shapes/user-fields.ts";
import type { Accounts } from "../../access/accounts.ts";
import { authOfAccount } from "../../access/acting.ts";
import type { UsersAccessor } from "../../config/app/index.ts";
import { SERVER_ACTOR } from "../../db/index.ts";
import { USERS_PER_SLICE } from "./limits.ts";
import { LIST_QUERY, readListQuery } from "./list-query.ts";
import { changesOfUser, NewInvitation } from "./schemas.ts";
import type { UsersService } from "./service.ts";
import { adminUser } from "./types.ts";

interface AccessorDeps {
  accounts: Accounts;
  users: UsersService;
  passwordMinLength: number;
}

const { email: _, ...LIST_OPTIONS } = LIST_QUERY;

const newUser = (passwordMinLength: number) =>
  Type.Object({
    email: Email,
    password: optional(newPassword(passwordMinLength)),
    displayName: DisplayName,
    role: Role,
    emailVerified: Type.Optional(Type.Boolean()),
    metadata: Metadata,
    appMetadata: Metadata,
  });

/** `app.users`: what the endpoints do, with the same checks of what it is given. */
export function createUsersAccessor({ accounts, users, passwordMinLength }: AccessorDeps): UsersAccessor {
  const member = "a member of a user";
  const findParser = createParser(Type.Object({ email: Email }));
  const listParser = createParser(Type.Object(LIST_OPTIONS), { member: "an option of a list" });
  const newParser = createParser(newUser(passwordMinLength), { member });
  const invitationParser = createParser(NewInvitation, { member });
  const changesParser = createParser(changesOfUser(passwordMinLength), { member });

  const get: UsersAccessor["get"] = async (id) => {
    const account = accounts.get(id);
    return account === null ? null : adminUser(account);
  };
  return {
    get,
    async find(by) {
      const { email } = findParser.parse(jsonCopy({ ...by }));
      const entry = accounts.findByEmail(email);
      return entry === null ? null : get(entry.id);
    },
    async list(options = {}) {
      const page = await users.list(readListQuery(listParser.parse(jsonCopy({ ...options }))));
      const found: Awaited<ReturnType<UsersAccessor["list"]>>["users"] = [];
      for (const [index, { id }] of page.users.entries()) {
        // A user has up to 36 KB: a thousand of them take several turns.
        if (index % USERS_PER_SLICE === USERS_PER_SLICE - 1) await nextTurn();
        const account = accounts.get(id);
        if (account !== null) found.push(adminUser(account));
      }
      return { users: found, cursor: page.cursor };
    },
    async create(user) {
      const given = newParser.parse(jsonCopy({ ...user }));
      requireMetadataSize({ metadata: given.metadata, appMetadata: given.appMetadata });
      const account = { ...given, email: emailOf(given.email), password: given.password ?? undefined };
      return (await users.create(account, SERVER_ACTOR)).user;
    },
    async invite(invitation) {
      const given = invitationParser.parse(jsonCopy({ ...invitation }));
      return (await users.invite({ ...given, email: emailOf(given.email) }, SERVER_ACTOR)).user;
    },
    async update(id, changes) {
      const given = changesParser.parse(jsonCopy({ ...changes }));
      requireMetadataSize({ metadata: given.metadata, appMetadata: given.appMetadata });
      const { email, ...others } = given;
      const address = email === undefined ? {} : { email: emailOf(email) };
      return users.update(id, { ...others, ...address }, SERVER_ACTOR);
    },
    delete: async (id) => users.remove(id, SERVER_ACTOR),
    setClaims: async (id, claims) => users.setClaims(id, jsonCopy({ ...claims }), SERVER_ACTOR),
    revokeSessions: async (id) => users.revoke(id, SERVER_ACTOR),
    async auth(id) {
      const account = accounts.get(id);
      if (account === null || account.disabled) return null;
      return authOfAccount(account);
    },
  };
}
