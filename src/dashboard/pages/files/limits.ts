/** Signed addresses of one request, by the server, and how long one is used: it is good for an hour. */
export const SIGNED_AT_ONCE_MAX = 100;
