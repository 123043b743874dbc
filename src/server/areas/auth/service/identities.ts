import { notFound } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { Identity } from "../../../config/shapes/sign-in.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { requireOtherWayIn, requireRecentProof } from "../sessions/ways-in.ts";
import { deleteIdentity, identitiesOfUser } from "../statements/means.ts";
import type { Caller } from "../store/account-file.ts";

const identityView = projection(Identity);

export const identitiesOf = ({ file }: AuthDeps, { userId }: Caller): Identity[] =>
  identitiesOfUser.all(file.sql, { userId }).map(identityView);

/** Errors: 404, 401 `Sign in again`, 409 for the last way of signing in. */
export async function removeIdentity({ file, config }: AuthDeps, caller: Caller, id: string): Promise<void> {
  const { userId } = caller;
  await file.write((write) => {
    const account = requireRecentProof(write.tx, caller, config, write.now);
    const identities = identitiesOfUser.all(write.tx, { userId });
    if (!identities.some((identity) => identity.id === id)) throw notFound(`There is no identity "${id}"`);
    requireOtherWayIn(write.tx, account, config, id);
    deleteIdentity.run(write.tx, { id });
    const after = { type: "identity" };
    write.audit({ user: userId }, { action: "factor.delete", target: `users/${userId}`, after });
  });
}
