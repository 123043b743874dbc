import { orNull } from "../transport/errors.ts";
import type { Transport } from "../transport/types.ts";
import type { AdminUser, AdminUsers, OutboxEntry, OutboxMail, SignInMeans, UserEntry } from "./user-types.ts";

const USERS = "/api/auth/admin/users";
const OUTBOX = "/api/auth/admin/outbox";
const IMPORTS = "/api/admin/auth/users";
const PARTS = { session: "sessions", identity: "identities", passkey: "passkeys" };
const pathOf = (id: string): string => `${USERS}/${encodeURIComponent(id)}`;

export const createUsers = ({ request }: Transport): AdminUsers => ({
  get: (id) => orNull(request<AdminUser>("GET", pathOf(id))),
  async list(query) {
    const answer = await request<{ users: UserEntry[]; cursor: string | null }>("GET", USERS, { query: { ...query } });
    return { items: answer.users, cursor: answer.cursor };
  },
  create: async (body) => (await request<{ user: AdminUser }>("POST", USERS, { body })).user,
  invite: async (body) => (await request<{ user: AdminUser }>("POST", `${USERS}/invite`, { body })).user,
  async import(users) {
    const path = `${IMPORTS}/import`;
    const { results } = await request<{ results: { id: string }[] }>("POST", path, { body: { users } });
    return results.map(({ id }) => id);
  },
  update: (id, body) => request<AdminUser>("PATCH", pathOf(id), { body }),
  async delete(id) {
    await request("DELETE", pathOf(id));
  },
  async setClaims(id, body) {
    await request("PUT", `${pathOf(id)}/claims`, { body });
  },
  async revokeSessions(id) {
    await request("POST", `${pathOf(id)}/revoke`);
  },
  async sendMail(id, mail, redirectUrl) {
    await request("POST", `${pathOf(id)}/send-${mail}`, { body: { redirectUrl } });
  },
  async removeFactors(id) {
    await request("DELETE", `${pathOf(id)}/mfa`);
  },
  async outbox(query) {
    const answer = await request<{ mails: OutboxEntry[]; cursor: string | null }>("GET", OUTBOX, {
      query: { ...query },
    });
    return { items: answer.mails, cursor: answer.cursor };
  },
  outboxMail: (id) => request<OutboxMail>("GET", `${OUTBOX}/${encodeURIComponent(id)}`),
  signInMeans: (id) => request<SignInMeans>("GET", `${pathOf(id)}/means`),
  async removeSignInMeans(id, kind, removedId) {
    await request("DELETE", `${pathOf(id)}/${PARTS[kind]}/${encodeURIComponent(removedId)}`);
  },
});
