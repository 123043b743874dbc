/** Writes of one batch, by the server. */
export const BATCH_MAX = 500;
/** Time between two looks at rooms. */
export const ROOMS_EVERY_MS = 700;
/** Rooms, and channels, that are listed: a search finds the others. */
export const LISTED_MAX = 200;
/** Time between two looks at the figures of the overview. */
export const FIGURES_EVERY_MS = 5_000;
/** Time between the last key in a search and its request. */
export const SEARCH_DELAY_MS = 150;
