/** Neighbours that are looked for. */
export const NEIGHBOURS_SHOWN = 10;
