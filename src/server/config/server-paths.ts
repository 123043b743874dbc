/** The first segments of paths that are the server's own: no file of a site is there. */
export const SERVER_PATHS = ["api", "admin", "swagger", "client", "metrics"] as const;
