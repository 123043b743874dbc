/** A component that is gone may be back at once: React mounts twice in development, and routes change. */
export const LEAVE_AFTER_MS = 250;
/** A room that could not be reached is joined again. */
export const JOIN_AGAIN_MS = 2_000;
