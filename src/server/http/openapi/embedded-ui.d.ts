/** The file that `scripts/build.ts` embeds; the import is its path. */
declare module "platform:swagger-ui" {
  const path: string;
  export default path;
}
