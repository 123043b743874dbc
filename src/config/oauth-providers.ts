/** Providers whose addresses the server knows; one of any other name says its `issuer`. */
export const KNOWN_PROVIDERS = ["google", "gitlab", "github", "discord"] as const;

export type KnownProvider = (typeof KNOWN_PROVIDERS)[number];
