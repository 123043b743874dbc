import { MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/** A rule that takes longer denies; a `before` hook that takes longer fails its request. Handlers of rooms have the same time. */
export const RULE_TIMEOUT_MS = 5 * SECOND_MS;

/** `metadata` and `appMetadata` of a user, each, as JSON. */
export const METADATA_MAX_BYTES = 16 * 1024;
/** Custom claims of a user as JSON. */
export const CLAIMS_MAX_BYTES = 4 * 1024;

/** Verified tokens in memory: the signature of a token is checked once instead of with every request. */
export const VERIFIED_TOKENS_MAX = 20_000;
/** Longer than any access token the server issues, as their claims have at most 4 KiB. Longer ones are not hashed. */
export const TOKEN_LENGTH_MAX = 12_288;
/** Tokens stay valid when the server's clock has been set back by up to this much since they were issued. */
export const CLOCK_SKEW_MS = 5 * MINUTE_MS;
