/** What is true of a session's user at this moment, whatever an older token says. */
export interface SessionState {
  role: string;
  email: string | null;
  emailVerified: boolean;
  isAnonymous: boolean;
}

/** The same with what a token of the session has to match. */
export interface PresentSession extends SessionState {
  /** Goes up when a password is set: access tokens of before count no longer. */
  tokenVersion: number;
}

/**
 * Asked at every use of a token, in memory, so that a revocation counts at once. null: the session has ended, or its
 * user is disabled or deleted. Decisions 6.
 */
export interface SessionLookup {
  find(sessionId: string, userId: string): PresentSession | null;
}

/**
 * How WebSockets learn that what they were opened with counts no longer: the session was signed out or revoked, its user
 * disabled or deleted, or a new password set in it.
 */
export interface SessionEvents {
  /** The function returned takes the listener away. */
  onEnd(listener: (sessionId: string) => void): () => void;
}

/** What is true of a user has changed: the role, the email, whether it is verified. */
export interface UserEvents {
  /** The function returned takes the listener away. */
  onUserChange(listener: (userId: string) => void): () => void;
}
