/** Different lookups of the rules of one request. */
export const REQUEST_LOOKUPS_MAX = 10_000;
/** Different lookups of the rule of one subscription. */
export const SUBSCRIPTION_LOOKUPS_MAX = 1_000;
/** Places that one subscription watches one by one: about 200 bytes each. */
export const WATCHED_PLACES_MAX = 2_000;
