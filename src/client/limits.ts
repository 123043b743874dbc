/** Further tries of a request that may be repeated. */
export const RETRIES_MAX = 3;
/** The wait before the first further try; each next one is twice as long, less up to a half by chance. */
export const RETRY_BACKOFF_MS = 300;
/** A longer `Retry-After` is not waited for: the error says it. */
export const RETRY_AFTER_MAX_MS = 20_000;
/** One try of a request. The server ends its own longest queries after 30 s. */
export const REQUEST_TIMEOUT_MS = 40_000;

/** An access token is replaced when less than this, or than a fifth of its lifetime, is left. */
export const REFRESH_MARGIN_MS = 60_000;
/** A client that refreshes holds the lease of its store for at most this long. Longer than the tries of one refresh. */
export const REFRESH_LEASE_MS = 15_000;
/** One try of a refresh. Ends within the lease. */
export const REFRESH_TIMEOUT_MS = 10_000;
/** How often a client that waits for another one's refresh looks into the store. */
export const REFRESH_POLL_MS = 100;
/** After which the holder of a lease looks whether another client took it at the same moment. */
export const REFRESH_SETTLE_MS = 30;

/** How often it is looked whether the window of a sign-in is back. */
export const OAUTH_POPUP_POLL_MS = 100;

/** Of one cookie; browsers take 4,096 with its name and attributes. Longer values take several. */
export const COOKIE_VALUE_MAX_CHARACTERS = 3_600;
/** For how long a tab looks for a cookie that another one says it has set, at most about twice this. */
export const COOKIE_WAIT_MAX_MS = 5_000;

/** How often it is asked whether a backup is done. */
export const RUN_POLL_MS = 500;
