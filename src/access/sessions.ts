/** What is true of a session's user at this moment, whatever an older token says. */
export interface SessionState {
  role: string;
  email: string | null;
  isAnonymous: boolean;
}

/**
 * Asked at every use of a token, in memory, so that a revocation counts at once. null: the session has ended, or its
 * user is disabled or deleted. Decisions 6.
 */
export interface SessionLookup {
  find(sessionId: string, userId: string): SessionState | null;
}

/** How WebSockets learn that their session has ended: signed out, revoked, or its user disabled or deleted. */
export interface SessionEvents {
  /** The function returned takes the listener away. */
  onEnd(listener: (sessionId: string) => void): () => void;
}

/** What is true of a user has changed: the role, the email. */
export interface UserEvents {
  /** The function returned takes the listener away. */
  onUserChange(listener: (userId: string) => void): () => void;
}
