/** The library that `scripts/build.ts` embeds, empty where there is none for the system; the import is its path. */
declare module "platform:argon2" {
  const path: string;
  export default path;
}
