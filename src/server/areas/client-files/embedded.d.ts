/** The files that `scripts/build.ts` embeds; each import is a path. */
declare module "platform:client-module" {
  const path: string;
  export default path;
}

declare module "platform:client-package" {
  const path: string;
  export default path;
}
