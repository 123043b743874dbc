import type { JsonObject } from "../../kernel/json/json.ts";

/** The current state of a session's user; it overrides what an older token claims. */
export interface SessionState {
  role: string;
  email: string | null;
  emailVerified: boolean;
  phone: string | null;
  isAnonymous: boolean;
}

/** The state of a session's user, with the version that a token of the session must have. */
export interface PresentSession extends SessionState {
  /** The version of the session's access tokens. Setting a password increments it, which invalidates earlier tokens. */
  tokenVersion: number;
  /** The data of the invitation whose acceptance began the session; null: no such one. */
  invitation: JsonObject | null;
}

/**
 * Looks a session up in memory at every use of a token, so that a revocation takes effect immediately. null: the session has ended,
 * or its user is disabled or deleted.
 */
export interface SessionLookup {
  find(sessionId: string, userId: string): PresentSession | null;
}

/**
 * Notifies WebSockets that their session has ended: it was signed out or revoked, its user was disabled or deleted, or a new
 * password was set in it.
 */
export interface SessionEvents {
  /** Adds a listener, and returns a function that removes it. */
  onEnd(listener: (sessionId: string) => void): () => void;
}

/** Notifies of changes to a user's role, email or email verification. */
export interface UserEvents {
  /** Adds a listener, and returns a function that removes it. */
  onUserChange(listener: (userId: string) => void): () => void;
}
