/** Distinct lookups of one request's rules. */
export const REQUEST_LOOKUPS_MAX = 10_000;
/** Distinct lookups of one subscription's rule. */
export const SUBSCRIPTION_LOOKUPS_MAX = 1_000;
/** Places that one subscription watches individually: about 200 bytes each. */
export const WATCHED_PLACES_MAX = 2_000;
