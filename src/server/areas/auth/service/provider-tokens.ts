import { AppError } from "../../../../kernel/errors.ts";
import type { Accounts } from "../../../access/accounts.ts";
import type { ProviderToken } from "../../../config/app/users.ts";
import { PROVIDER_TOKEN_MARGIN_MS } from "../limits.ts";
import type { ProviderTokens } from "../providers/profile.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { type Identity, identitiesOfUser, keepTokens } from "../statements/means.ts";
import type { OAuthProviders } from "./oauth-providers.ts";

// Tokens of users at providers, for the code of the config. They are encrypted at rest, and go with their identity.

/** Returns `Accounts.providerToken`. */
export function createProviderTokens(deps: AuthDeps, providers: OAuthProviders): Accounts["providerToken"] {
  // A refresh token may be valid once: those who ask together share its answer.
  const refreshing = new Map<string, Promise<ProviderToken | null>>();
  return async (userId, provider) => {
    const identity = identitiesOfUser.all(deps.file.sql, { userId }).findLast((one) => one.provider === provider);
    const kept = identity === undefined ? null : tokensOf(deps, identity);
    if (identity === undefined || kept === null) return null;
    const { expiresAt } = kept;
    if (expiresAt === null || expiresAt - deps.clock.now() > PROVIDER_TOKEN_MARGIN_MS) return shown(kept);
    const underWay = refreshing.get(identity.id);
    if (underWay !== undefined) return underWay;
    const answer = refresh(deps, providers, identity, kept).finally(() => refreshing.delete(identity.id));
    refreshing.set(identity.id, answer);
    return answer;
  };
}

/** Returns the tokens that an identity has kept; null: none, or encrypted with another secret. */
function tokensOf({ sealing }: AuthDeps, { tokens }: Identity): ProviderTokens | null {
  const text = tokens === null ? null : sealing.unseal(tokens);
  return text === null ? null : (JSON.parse(text) as ProviderTokens); // Sealed by `sealedTokens`, or below.
}

const shown = ({ accessToken, expiresAt }: ProviderTokens): ProviderToken => ({
  accessToken,
  expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
});

async function refresh(
  deps: AuthDeps,
  providers: OAuthProviders,
  identity: Identity,
  { refreshToken, ...others }: ProviderTokens,
): Promise<ProviderToken | null> {
  if (refreshToken === null) return null;
  const { provider } = identity;
  const { RefusedRefresh } = await import("../providers/requests.ts");
  const client = await providers.named(provider);
  const fresh = await client.refresh({ ...others, refreshToken }).catch((cause: unknown) => {
    if (cause instanceof RefusedRefresh) return null;
    throw new AppError(502, `The provider "${provider}" does not answer`, { cause });
  });
  const isKept = await deps.file.write((write) => {
    const present = identitiesOfUser.all(write.tx, { userId: identity.userId }).find(({ id }) => id === identity.id);
    // Unlinked, removed by a reset, or replaced by a sign-in meanwhile: what was fetched belongs to nobody here.
    if (present === undefined || present.tokens !== identity.tokens) return false;
    const tokens = fresh === null ? null : deps.sealing.seal(JSON.stringify(fresh));
    keepTokens.run(write.tx, { id: identity.id, tokens });
    return true;
  });
  return isKept && fresh !== null ? shown(fresh) : null;
}
