/** Neighbours that are looked for. */
export const NEIGHBOURS_SHOWN = 10;
/** Characters of a pasted vector that are kept in the address. */
export const VECTOR_IN_ADDRESS_MAX = 2_000;
