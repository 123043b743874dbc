/** Files that a build takes into the executable; the import gives their path. */
declare module "*/vec0.so" {
  const path: string;
  export default path;
}
declare module "*/vec0.dylib" {
  const path: string;
  export default path;
}
declare module "*/vec0.dll" {
  const path: string;
  export default path;
}
