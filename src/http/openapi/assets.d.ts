declare module "swagger-ui-dist/*.js" {
  /** The path of the embedded file. */
  const path: string;
  export default path;
}

declare module "swagger-ui-dist/*.css" {
  /** The path of the embedded file. */
  const path: string;
  export default path;
}
