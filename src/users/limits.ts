/** Users of a page where the request says nothing, and at most. */
export const LIST_LIMIT_DEFAULT = 20;
export const LIST_LIMIT_MAX = 1_000;
/** Characters of what users are searched by: an address has no more. */
export const SEARCH_TEXT_MAX_CHARACTERS = 254;
/** Users of an import that are parsed before others get their turn. */
export const USERS_PER_SLICE = 50;
