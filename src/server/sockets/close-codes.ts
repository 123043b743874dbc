/** Close codes that all areas use. */
export const CLOSE = {
  goingAway: 1001,
  /** Bun's code for a connection that was lost without a close frame. */
  lost: 1006,
  flood: 1008,
  tryLater: 1013,
  protocol: 4000,
  sessionEnded: 4003,
} as const;
