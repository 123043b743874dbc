/** Fields at fault that an answer names; a body with more is refused all the same. */
export const PROBLEMS_MAX = 100;
/** Unknown members of one object that an answer names: a body has room for a million. */
export const UNKNOWN_NAMED_MAX = 20;
