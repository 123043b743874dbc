/** Providers that have an issuer by default. Others must configure theirs. */
export const KNOWN_PROVIDERS = ["google", "gitlab", "github", "discord"] as const;

export type KnownProvider = (typeof KNOWN_PROVIDERS)[number];
