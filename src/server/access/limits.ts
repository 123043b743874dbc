import { MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/**
 * The timeout of a rule, which then denies, and of a `before` hook, which then fails its request. Handlers of rooms have the same
 * timeout.
 */
export const RULE_TIMEOUT_MS = 5 * SECOND_MS;

/** The maximum size of a user's `metadata` and `appMetadata`, each, as JSON. */
export const METADATA_MAX_BYTES = 16 * 1024;
/** The maximum size of a user's custom claims as JSON. */
export const CLAIMS_MAX_BYTES = 4 * 1024;

/** The size of the cache of verified tokens: a token's signature is checked once instead of with every request. */
export const VERIFIED_TOKENS_MAX = 20_000;
/**
 * The maximum length of a token, above that of any access token the server issues, whose claims have at most 4 KiB. Longer ones are
 * not hashed.
 */
export const TOKEN_LENGTH_MAX = 12_288;
/** The tolerance for a clock that has been set back since a token was issued. */
export const CLOCK_SKEW_MS = 5 * MINUTE_MS;
