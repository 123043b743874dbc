/** Maximum number of writes in one batch, a limit of the server. */
export const BATCH_MAX = 500;
/** Polling interval of rooms. */
export const ROOMS_EVERY_MS = 700;
/** Maximum number of listed rooms, or channels. A search finds the others. */
export const LISTED_MAX = 200;
/** Polling interval of the overview's figures. */
export const FIGURES_EVERY_MS = 5_000;
/** Debounce of a search. */
export const SEARCH_DELAY_MS = 150;
