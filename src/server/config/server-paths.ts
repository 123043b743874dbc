/** The first path segments that belong to the server: a site has no files there. */
export const SERVER_PATHS = ["api", "admin", "swagger", "client", "metrics"] as const;
