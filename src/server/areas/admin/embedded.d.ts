/** What `scripts/build.ts` embeds; the import is a path. */
declare module "platform:dashboard" {
  const path: string;
  export default path;
}
