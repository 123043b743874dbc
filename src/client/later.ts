/** Loads the features that most pages do not use at once. */
export const later = () => import("./small-features.ts");
