import { MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/** A rule that takes longer denies; a `before` hook that takes longer fails its request. Handlers of rooms have the same time. */
export const RULE_TIMEOUT_MS = 5 * SECOND_MS;

/** `metadata` and `appMetadata` of a user, each, as JSON. */
export const METADATA_MAX_BYTES = 16 * 1024;
/** Custom claims of a user as JSON. */
export const CLAIMS_MAX_BYTES = 4 * 1024;
export const PASSWORD_MIN_CHARACTERS = 8;
export const PASSWORD_MAX_BYTES = 1024;
export const EMAIL_MAX_CHARACTERS = 254;
/** An address with white space around it. */
export const EMAIL_TEXT_MAX_CHARACTERS = 4 * EMAIL_MAX_CHARACTERS;
export const EMAIL_LOCAL_MAX_CHARACTERS = 64;
export const DISPLAY_NAME_MAX_CHARACTERS = 256;
export const AVATAR_URL_MAX_CHARACTERS = 2048;
export const ROLE_MAX_CHARACTERS = 64;

/** Verified tokens in memory: the signature of a token is checked once instead of with every request. */
export const VERIFIED_TOKENS_MAX = 20_000;
/** Longer than any access token the server issues, as their claims have at most 4 KiB. Longer ones are not hashed. */
export const TOKEN_LENGTH_MAX = 12_288;
/** Tokens stay valid when the server's clock has been set back by up to this much since they were issued. */
export const CLOCK_SKEW_MS = 5 * MINUTE_MS;
