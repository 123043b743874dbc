/** File that `scripts/build.ts` embeds; the import is its path. */
declare module "platform:dashboard" {
  const path: string;
  export default path;
}
