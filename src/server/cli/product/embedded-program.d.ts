/** The bundle that `scripts/build.ts` embeds; the import is its path. */
declare module "platform:program" {
  const path: string;
  export default path;
}
