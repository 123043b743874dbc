/** Users of a page: by default, and at most. */
export const LIST_LIMIT_DEFAULT = 20;
export const LIST_LIMIT_MAX = 1_000;
/** Characters of a search text: an email address has no more. */
export const SEARCH_TEXT_MAX_CHARACTERS = 254;
export const IMPORT_USERS_MAX = 1_000;
/** Entries of a list that are read in one turn of the event loop. */
export const ENTRIES_PER_SLICE = 100;
/** Slices of one page of a search, each of as many users at most. */
export const SEARCH_SLICES_MAX = 20;
/** Identities of one imported user, and bytes of a provider's id of a user. */
export const IMPORT_IDENTITIES_MAX = 10;
export const SUBJECT_MAX_BYTES = 255;
/** Users of an import that are checked in one turn of the event loop. */
export const USERS_PER_SLICE = 50;
export const ID_MAX_CHARACTERS = 256;
/** Of a time in an import. */
export const TIME_MAX_CHARACTERS = 64;
export const REDIRECT_URL_MAX_CHARACTERS = 2_048;
export const PASSWORD_HASH_MAX_CHARACTERS = 4_096;
