import { Type } from "typebox";
import { badRequest } from "../../../kernel/errors.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import type { Accounts } from "../../access/accounts.ts";
import { authOfAccount } from "../../access/acting.ts";
import type { User, UsersAccessor } from "../../config/app/index.ts";
import { Email } from "../../config/shapes/user-fields.ts";
import { newUser, UserInvitation, userChanges } from "../../config/shapes/users.ts";
import { SERVER_ACTOR } from "../../db/index.ts";
import { LIST_QUERY, readListQuery } from "./list-query.ts";
import { adminUser, createUser, inviteUser, listUsers, setClaims, USERS_PER_SLICE, updateUser } from "./service.ts";

const { email: _, ...LIST_OPTIONS } = LIST_QUERY;

/** `app.users`: what the endpoints do, with the same checks of what it is given. */
export function createUsersAccessor(accounts: Accounts, passwordMinLength: number): UsersAccessor {
  const member = "a member of a user";
  const findParser = createParser(Type.Object({ email: Email }));
  const listParser = createParser(Type.Object(LIST_OPTIONS), { member: "an option of a list" });
  const newParser = createParser(newUser(passwordMinLength), { member });
  const invitationParser = createParser(UserInvitation, { member });
  const changesParser = createParser(userChanges(passwordMinLength), { member });

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
      const page = await listUsers(accounts, readListQuery(listParser.parse(jsonCopy({ ...options }))));
      const users: User[] = [];
      for (const [index, { id }] of page.users.entries()) {
        if (index % USERS_PER_SLICE === USERS_PER_SLICE - 1) await nextTurn();
        const account = accounts.get(id);
        if (account !== null) users.push(adminUser(account));
      }
      return { users, cursor: page.cursor };
    },
    create: async (user) => createUser(accounts, newParser.parse(jsonCopy({ ...user })), SERVER_ACTOR),
    async invite(email, options = {}) {
      if (typeof email !== "string") {
        throw badRequest("app.users.invite takes the address first: app.users.invite(email, { role, data, … })");
      }
      return inviteUser(accounts, invitationParser.parse(jsonCopy({ ...options, email })), SERVER_ACTOR);
    },
    update: async (id, changes) =>
      updateUser(accounts, id, changesParser.parse(jsonCopy({ ...changes })), SERVER_ACTOR),
    async delete(id) {
      await accounts.remove(id, SERVER_ACTOR);
    },
    setClaims: async (id, claims) => setClaims(accounts, id, jsonCopy({ ...claims }), SERVER_ACTOR),
    providerToken: (id, provider) => accounts.providerToken(id, provider),
    revokeSessions: async (id) => accounts.revoke(id, SERVER_ACTOR),
    async auth(id) {
      const account = accounts.get(id);
      if (account === null || account.disabled) return null;
      return authOfAccount(account);
    },
  };
}
