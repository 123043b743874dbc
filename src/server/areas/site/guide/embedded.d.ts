/** The files that `scripts/build.ts` embeds; the import is a path. */
declare module "platform:guide" {
  const path: string;
  export default path;
}
